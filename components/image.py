"""The container image that every step of ours runs in."""

PLACEHOLDER_IMAGE = "placeholder/image-training-python:build-and-push-yours"
"""Stands in a spec compiled without `--image`: runs locally, where no image is used, and nowhere else."""
