"""The runs of a work directory as the console shows them, and what it does to them."""
