"""Find the endpoints of the work folder with a version; a deployed version is not deleted."""

import json
from pathlib import Path

FOLDER, FILE = "endpoints", "endpoint.json"
"""`<work-dir>/endpoints/<id>/endpoint.json`."""


def endpoints_of(work_dir: Path, model_id: str, number: str) -> list[str]:
    """Return the names of the endpoints that a version of a model is deployed to; a damaged record counts for none."""
    found = []
    for path in sorted((work_dir / FOLDER).glob(f"*/{FILE}")):
        try:
            endpoint = json.loads(path.read_text())
            deployed = [
                (each["model"].rpartition("/")[2], each["modelVersionId"]) for each in endpoint["deployedModels"]
            ]
            found += [str(endpoint["name"])] if (model_id, number) in deployed else []
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue
    return found
