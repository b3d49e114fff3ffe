"""A local endpoint that speaks Vertex AI's REST API and runs what it is given: `python -m localvertex serve`."""
