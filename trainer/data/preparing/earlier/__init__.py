"""What earlier runs left: the previous dataset, found by a pointer, and parts of killed attempts."""
