"""Outputs that the user names, and what long work shows and keeps meanwhile; other files are exact_resume's."""
