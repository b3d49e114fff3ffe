"""The pytest plugin: a local endpoint for a test, and pipelines that a test runs."""
