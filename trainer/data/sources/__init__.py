"""The kinds of sources that labelled images come from; what is done with the images is not decided here."""
