"""The HTML pages of the steps on a dataset, a model and a comparison."""
