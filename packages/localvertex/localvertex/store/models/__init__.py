"""The records of one model in the local registry: its versions, aliases, fields and evaluations, and their changes."""
