"""Checks before a run starts: an impossible run is refused as a whole. Nothing runs here."""
