"""The trial of XLA in a child process, whose crash or hang does not end the training."""
