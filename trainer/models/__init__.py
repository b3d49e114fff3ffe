"""The networks that can be trained, by name, in custom/ the user's own, and the metrics that judge them."""
