"""What `compile.py`, the `plan` step and `custom-job` share about a training job; steps are in `components`."""
