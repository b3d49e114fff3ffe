"""TensorBoard logs of a run: curves, hyperparameters, images and a profile; see docs/tensorboard.md."""
