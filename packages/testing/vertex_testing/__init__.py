"""What the tests of several packages share: servers, processes, Cloud Storage and fixtures; for development only."""
