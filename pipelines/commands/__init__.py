"""One module a sub-command of `python -m pipelines`: `add_options(parser)` and `run(options)`."""
