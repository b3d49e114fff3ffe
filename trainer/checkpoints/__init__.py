"""What a run leaves behind: checkpoints, lease, identity and outcome; when to save is decided in `loop`."""
