"""All machine-learning logic: data, models, the training loop, evaluation, export. Knows nothing of kfp."""
