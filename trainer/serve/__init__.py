"""The prediction server of an exported model: `python -m trainer.serve MODEL_DIR`."""
