"""The trainer's accuracy with its defaults, compared with hand-written Keras recipes on digits and synthetic images."""
