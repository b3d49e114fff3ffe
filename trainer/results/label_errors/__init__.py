"""Probable label errors: confident learning, the section of the report, and folds for training images."""
