"""The models of the registry as the console shows them, and predictions of one that is tried."""
