"""What compile, the plan step and the custom-job command share about a training job; no step is defined here."""
