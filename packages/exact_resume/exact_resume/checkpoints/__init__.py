"""What a run leaves behind: its checkpoints, lease, result and notes; its caller decides when to save."""
