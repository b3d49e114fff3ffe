"""One training step on the devices; the loop over many steps is in `loop`."""
