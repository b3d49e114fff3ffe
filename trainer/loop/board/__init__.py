"""What TensorBoard shows of a run: curves, hyperparameters, images and a profile; docs/tensorboard.md describes it."""
