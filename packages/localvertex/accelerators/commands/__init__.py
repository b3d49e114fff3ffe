"""The sub-commands of `python -m accelerators`, one file each; what they check and print comes from other folders."""
