"""Compares two prepared datasets: images, classes, and the distributions of brightness, contrast and size."""
