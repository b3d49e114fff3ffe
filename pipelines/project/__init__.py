"""The pipeline's resources in a cloud project: `cloud.py up` creates and marks them, `down` removes marked ones."""
