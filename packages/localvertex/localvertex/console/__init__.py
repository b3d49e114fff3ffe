"""The console: the pages in a browser, and the local routes that they need besides Vertex AI's own API."""
