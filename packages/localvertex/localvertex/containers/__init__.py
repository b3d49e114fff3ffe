"""Container commands: run in their image, in a sandbox, or refused."""
