"""The step `plan`: decides what to train on which machines, and whether anything is left to do."""
