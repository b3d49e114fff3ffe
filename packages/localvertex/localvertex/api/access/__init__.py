"""Who may call the endpoint: the token of a work directory, its check, and the page that gives it to a browser."""
