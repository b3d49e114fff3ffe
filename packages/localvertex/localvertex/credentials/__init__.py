"""What keeps a local run from the user's credentials, and what the user may allow; nothing here runs a step."""
