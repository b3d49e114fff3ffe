"""The steps of the pipeline for any training code, which is known by what it writes (docs/any-training.md)."""
