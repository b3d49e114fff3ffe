"""From source images to batches; nothing here knows a model."""
