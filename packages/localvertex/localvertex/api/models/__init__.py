"""The models of the API: versions and aliases in the registry, and evaluations."""
