"""Schedules in the console: what Vertex AI's methods do not have."""
