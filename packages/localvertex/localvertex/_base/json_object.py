"""The type of an object in JSON, as requests, records and compiled files have it."""

from typing import Any

JsonObject = dict[str, Any]
