"""The steps of the pipeline for any training code, which they know only by its output files (docs/any-training.md)."""
