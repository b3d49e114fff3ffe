"""The output of `prepare`, checked when it is read: the fields of dataset.json, and the shards."""
