"""The graphs, and what is done on Vertex AI with a compiled one."""
