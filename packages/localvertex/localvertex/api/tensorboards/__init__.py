"""TensorboardService: tensorboards, experiments, runs and time series of metrics, with their points."""
