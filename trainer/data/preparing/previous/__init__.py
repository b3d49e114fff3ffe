"""What previous runs left: the history of datasets, the newest of them, and parts of killed attempts."""
