"""One Dataflow job per dataset: its settings, its submission, and the wait for its end."""
