"""What is checked before anything of a run starts, so that it is refused whole; nothing is run here."""
