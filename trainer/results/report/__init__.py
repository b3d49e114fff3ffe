"""The HTML pages of the steps: their building blocks, charts, and the reports on a dataset and on a model."""
