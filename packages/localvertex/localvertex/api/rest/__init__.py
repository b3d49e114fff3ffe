"""What all collections of the API share: calls, errors, lists and storage; no collection is defined here."""
