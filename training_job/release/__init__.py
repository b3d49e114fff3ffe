"""The release of a model: comparison with the champion, registration, deployment."""
