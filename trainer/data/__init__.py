"""From source images to batches: sources, the prepared dataset, its input pipeline, and pages. Knows no model."""
