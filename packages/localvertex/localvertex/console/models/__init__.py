"""The models of the registry as the console shows them."""
