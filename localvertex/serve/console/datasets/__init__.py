"""The datasets and results of runs, as the console shows them."""
