"""Probable label errors among training images: folds, and a training for each."""
