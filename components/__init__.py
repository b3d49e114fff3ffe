"""The pipeline's steps, a file or folder each: a signature in a file of the step's name, and what it calls."""
