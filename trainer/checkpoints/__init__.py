"""What the trainer adds to a run's checkpoints: its identity, weights to start from, and images that it has seen."""
