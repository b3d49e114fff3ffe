"""What the steps of a run reach of the API: an endpoint, which is a server from the first call on, and its methods."""
