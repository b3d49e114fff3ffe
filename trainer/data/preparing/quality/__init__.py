"""Finds what is wrong with the images of a dataset, from their rows alone: look-alikes, conflicts, and odd images."""
