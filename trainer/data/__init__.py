"""From source images to batches: sources, the prepared dataset and its input pipeline. Knows no model and no page."""
