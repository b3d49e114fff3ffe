"""What the console shows of one run: its record, logs and artifacts."""
