"""The step `summary`: how the run ended, printed, and sent when asked."""
