"""The compiled pipeline file as a typed model, and its reader; checking and running pipelines is not done here."""
