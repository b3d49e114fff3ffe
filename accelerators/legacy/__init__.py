"""Jobs of AI Platform Training (shut down on 2025-01-31) and what they become on Vertex AI."""
