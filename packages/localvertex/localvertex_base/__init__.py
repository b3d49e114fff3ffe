"""What `accelerators` and `localvertex` share: reading what users give, and the compiled file."""
