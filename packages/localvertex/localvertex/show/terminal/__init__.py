"""What a user sees on a terminal of any width: the live view, the list of runs, and the command that resumes."""
