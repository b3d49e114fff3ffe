"""The Model Registry as the steps see it: models, versions, and the labels that this project gives them."""
