"""Releasing a trained model: the Model Registry, its comparison and its deployment, as the steps of the pipeline do."""
