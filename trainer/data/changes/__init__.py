"""Compares two prepared datasets by their lists of images."""
