"""Text that a step reads from its own source."""

TEXT = "embedded"
