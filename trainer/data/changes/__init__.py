"""What changed from one prepared dataset to the next: images, classes, and how images look."""
