"""Decoded documents, to be damaged by a test."""

from typing import Any


def fields(node: Any) -> list[tuple[Any, Any]]:
    """Return every field of a decoded document as its container and key."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [field for key in keys for field in fields(node[key])]
