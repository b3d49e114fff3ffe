"""The rules of the service for a custom job, one file per subject; facts come from `catalogue`."""
