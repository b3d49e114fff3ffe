"""The sub-commands of `python -m accelerators`, one file each."""
