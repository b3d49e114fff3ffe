"""Two or more runs side by side: parameters, metrics, steps, curves, and the images on which they differ."""
