"""Calls, errors, lists and storage, shared by all collections of the API."""
