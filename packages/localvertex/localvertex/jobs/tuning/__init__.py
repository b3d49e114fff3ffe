"""Hyperparameter tuning jobs on this machine: trials are custom jobs with parameters from a study."""
