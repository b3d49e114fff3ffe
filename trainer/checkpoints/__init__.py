"""The trainer's additions to a run's checkpoints: its identity, starting weights and the images it has seen."""
