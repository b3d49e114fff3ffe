"""The form that creates a run: the compiled file, what it needs, its checks, and the request that starts it."""
