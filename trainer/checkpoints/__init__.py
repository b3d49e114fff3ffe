"""What a run leaves behind: its checkpoints, lease, identity and outcome; `loop` decides when to save."""
