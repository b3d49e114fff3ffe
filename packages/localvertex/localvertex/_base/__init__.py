"""The ground floor: reading user input, and the compiled file."""
