"""The pipeline's steps, one per file: a signature, one import, one call; what they share is in `training_job`."""
