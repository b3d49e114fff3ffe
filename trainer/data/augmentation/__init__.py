"""Random changes of training images: the values of `augment`, and Keras' layers."""
