"""Output for a terminal of any width: the live view, the list of runs, and the command that resumes."""
