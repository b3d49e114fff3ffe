"""The checks that only compiled pipelines need; rules for a single job are in `rules`."""
