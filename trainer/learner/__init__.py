"""One training step on the devices: model, optimizer, gradients; the loop over many steps is in `loop`."""
