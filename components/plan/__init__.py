"""The step `plan`: what is trained, on which machines, and whether anything is left to do."""
