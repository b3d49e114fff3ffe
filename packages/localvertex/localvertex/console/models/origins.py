"""Where versions of models came from: the run, its dataset and its metrics, and the endpoints they are deployed to."""

from collections import defaultdict
from contextlib import suppress
from typing import Any

from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.rest.store import Damaged, Store
from localvertex.console.runs.outputs import Content, RunOutputs, place_in
from localvertex.store.models.reading import SOURCE, UPLOADED_BY

_LABEL = "dataset"
"""The label of a version with the beginning of its dataset's fingerprint."""

_MAX_DATASETS = 5


class Origins:
    """The runs and endpoints of the work folder, read once for all versions of an answer.

    Args:
        store: The records of the server.
    """

    def __init__(self, store: Store) -> None:
        self._work_dir = store.folder.parent
        every = {name: (each.content or {})["outputs"] for name, each in store.index.summaries(RunOutputs(store))}
        self.runs: dict[str, Content] = {name: each for name, each in every.items() if each}
        self._by_uuid = {content["uuid"]: name for name, content in self.runs.items() if content["uuid"]}
        self._by_model: dict[str, str] = {}
        for name in sorted(self.runs, key=lambda each: str(self.runs[each]["create_time"]), reverse=True):
            # Later runs may have read a version that an earlier one registered.
            self._by_model |= {resource.rpartition("/")[2]: name for resource in self.runs[name]["models"]}
        self.endpoints = _endpoints(EndpointRecords(self._work_dir))
        """Where each version is deployed, by the id of the model and its number."""

    def run_of(self, model_id: str, number: str, content: Content) -> str:
        """Return the id of the run that registered a version, empty if it is not known or was deleted.

        Args:
            model_id: Of the model.
            number: Of the version.
            content: Its model.json as it is.
        """
        uuid = str(content.get(UPLOADED_BY, "")).partition("/")[0]
        place = place_in(str(content.get(SOURCE, "")), str(self._work_dir)) or {"run": ""}
        found = (self._by_uuid.get(uuid), place["run"], self._by_model.get(f"{model_id}@{number}"))
        return next((each for each in found if each in self.runs), None) or ""

    def datasets_of(self, run: str, labels: Any) -> list[str]:
        """Return the fingerprints of the datasets of a version, by its label or else from its run.

        Args:
            run: Its run.
            labels: Its labels.
        """
        every = self.runs.get(run, {}).get("datasets", [])
        label = labels.get(_LABEL) if isinstance(labels, dict) else None
        if isinstance(label, str) and label:
            return [next((each for each in every if each.startswith(label)), label)]
        return [*dict.fromkeys(every)][:_MAX_DATASETS]


def _endpoints(records: EndpointRecords) -> dict[tuple[str, str], list[Content]]:
    """Return the endpoints by model and version; a damaged record counts for none."""
    found: defaultdict[tuple[str, str], list[Content]] = defaultdict(list)
    for endpoint_id in records.ids:
        with suppress(Damaged):
            endpoint = records.read(endpoint_id) or {}
            for each in endpoint.get("deployedModels", []):
                row = {
                    "name": endpoint["name"],
                    "display_name": endpoint["displayName"],
                    "deployed_model": each["id"],
                    "traffic": endpoint["trafficSplit"].get(each["id"], 0),
                }
                found[each["model"].rpartition("/")[2], each["modelVersionId"]].append(row)
    return dict(found)
