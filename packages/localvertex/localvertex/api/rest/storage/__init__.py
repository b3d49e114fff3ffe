"""Objects of Cloud Storage over the folders that stand for buckets, as far as Vertex AI's SDK uses them."""
