"""Vertex AI's import files for image classification: CSV and JSON Lines, one image and its label per line."""
