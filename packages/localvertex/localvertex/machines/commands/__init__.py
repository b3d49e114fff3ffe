"""The sub-commands of `localvertex machines`, one file each; what they check and print comes from other folders."""
