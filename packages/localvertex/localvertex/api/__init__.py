"""A local endpoint with Vertex AI's REST API (`python -m localvertex serve`); the code that runs jobs is elsewhere."""
