"""Probable label errors: confident learning, and folds for training images."""
