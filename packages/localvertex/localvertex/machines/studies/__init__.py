"""The study of a tuning job: its metrics, its parameters, and the rules of the API for them."""
