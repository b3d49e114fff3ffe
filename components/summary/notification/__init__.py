"""What `summary` sends at the end of a run, when asked: to a webhook or a Pub/Sub topic, with the failed steps."""
