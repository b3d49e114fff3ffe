"""Files, locally and on gs://: written as a whole or not at all."""
