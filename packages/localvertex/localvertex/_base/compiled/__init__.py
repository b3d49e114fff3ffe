"""The compiled pipeline file as a typed model, and its reader; nothing is checked or run here."""
