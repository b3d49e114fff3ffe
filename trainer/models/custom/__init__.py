"""The user's own networks, `--model trainer.models.custom.FILE:FUNCTION`. The trainer's own are one level up."""
