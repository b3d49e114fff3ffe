"""The end of the pipeline: comparison with the champion, registration, serving and deployment."""
