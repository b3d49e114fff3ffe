"""What comes out of a training: evaluation, the SavedModel and the report pages."""
