"""The rules for a custom job, one file per subject; facts are in `catalogue`, rules for pipelines in `pipeline`."""
