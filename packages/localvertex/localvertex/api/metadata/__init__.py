"""Vertex ML Metadata: stores, contexts, executions, artifacts, their lineage, and what pipeline runs add to them."""
