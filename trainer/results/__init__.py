"""The results of a training run: evaluation, the exported SavedModel, and the report pages in report/."""
