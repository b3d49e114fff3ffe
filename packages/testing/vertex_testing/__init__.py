"""Support for tests that more than one package needs; only for development."""
