"""Who may call the endpoint: the token of a work folder, its check, and the page that gives it to a browser."""
