"""The HTML pages of the steps on a dataset, a model, a comparison and label errors."""
