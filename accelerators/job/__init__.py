"""A job as its author wrote it: fields, types and findings about them; no rule of the service is applied here."""
