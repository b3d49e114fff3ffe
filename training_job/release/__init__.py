"""Releases a model: the comparison with the champion, the registration and the deployment."""
