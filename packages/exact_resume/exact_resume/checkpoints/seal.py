"""Seals: a small JSON file carries a checksum of its own content, so that a damaged one is not believed."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

FIELD = "seal"


def digest(content: Any) -> str:
    """Return the SHA-256 of a JSON value, whatever the order of its fields."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def add_seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with its seal."""
    return {**content, FIELD: digest(content)}


def is_intact(content: Mapping[str, Any]) -> bool:
    """Return whether the content has the right seal."""
    return bool(content.get(FIELD) == digest(without(content)))


def without(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content without its seal."""
    return {name: value for name, value in content.items() if name != FIELD}
