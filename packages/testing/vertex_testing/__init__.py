"""Shared by the tests of several packages: servers, processes, Cloud Storage and fixtures; for development only."""
