"""Labels of what the pipeline registers, by which it recognises its own models and versions."""

PROJECT_LABEL = ("managed-by", "vertex-gpu-training")
"""Label of each model of the pipeline: key and value."""
