"""The steps of the pipelines: each file is one component, a signature that calls into `trainer`."""
