"""One Dataflow job per dataset: settings, submission, and waiting for its end."""
