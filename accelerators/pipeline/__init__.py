"""The checks that only compiled pipelines need; a single job is checked by `rules`."""
