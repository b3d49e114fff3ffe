"""The endpoint that the steps of a run reach: a socket from the start, and a server from the first call on."""
