"""Every page and every line that a user sees of a run; nothing is decided here."""
