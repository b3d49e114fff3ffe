"""Finds defects of a dataset's images from their rows alone: near-duplicates, label conflicts, and odd images."""
