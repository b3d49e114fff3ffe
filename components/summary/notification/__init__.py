"""The notification at the end of a run, with the failed steps: to a webhook or a Pub/Sub topic."""
