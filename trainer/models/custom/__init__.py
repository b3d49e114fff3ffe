"""Networks of your own: `--model own_models.FILE:FUNCTION`. The image takes this folder along; see docs/models.md."""
