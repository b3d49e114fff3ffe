"""The command `probe`: a pipeline that records what a platform does, here and on Vertex AI, and what differs."""
