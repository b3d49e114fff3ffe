"""The kinds of sources of labelled images, without any decision about the images."""
