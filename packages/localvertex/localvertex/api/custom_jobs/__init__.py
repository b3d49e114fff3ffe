"""customJobs: worker pools run as processes of this machine, with the same code as in pipelines."""
