"""Compares a model with the champion, on test images that neither has seen."""
