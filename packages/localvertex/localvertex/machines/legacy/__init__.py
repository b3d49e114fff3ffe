"""The conversion of AI Platform Training jobs (shut down on 2025-01-31); Vertex AI jobs are not read here."""
