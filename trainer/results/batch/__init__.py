"""Batch predictions: images in as JSON Lines, a page and a list of the answers out. Needs no TensorFlow."""
