"""The step `export`: the SavedModel, and the labels that the run finds its version by."""
