"""Endpoints: their records, their traffic, and the processes of the models that are deployed to them."""
