"""Outputs that the user names, and what long work shows meanwhile; other files are exact_resume's."""
