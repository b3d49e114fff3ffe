"""A job as its author wrote it: fields, types and findings about them; the rules of the service are in `rules`."""
