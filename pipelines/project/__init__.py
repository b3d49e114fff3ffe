"""What the pipeline needs in a cloud project: `cloud.py up` makes and marks it, `down` removes what is marked."""
