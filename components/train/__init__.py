"""The training job, whose step is Google's: its machines and disks, and the weights that it starts from."""
