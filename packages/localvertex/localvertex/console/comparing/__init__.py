"""Two or more runs side by side: parameters, metrics, steps and curves."""
