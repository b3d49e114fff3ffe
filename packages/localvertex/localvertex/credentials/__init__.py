"""Isolation of local runs from the user's credentials, and the exceptions that the user may allow."""
