"""The API for the steps of a run: an endpoint, which is a server from the first call on, and its methods."""
