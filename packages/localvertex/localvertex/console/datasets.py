"""The datasets that runs have written: by name or source, the newest first, each with what changed before it."""

from collections import defaultdict
from itertools import groupby, pairwise
from typing import Any

from localvertex.api.rest.store import Store
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs.outputs import Content, RunOutputs, exists

_MAX_DATASETS, _MAX_RUNS = 100, 20
"""Most rows per name or source: its newest datasets, and the newest runs of each."""


class Datasets:
    """The datasets of a work folder.

    Args:
        store: The records of the server, whose index has the outputs of all runs.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._work_dir = store, store.folder.parent
        self._runs = RunOutputs(self._work_dir)

    @local_route("GET", "/local/datasets")
    def list_all(self, _: LocalCall) -> dict[str, Any]:
        """Return all datasets in groups of one name or source, the group with the newest dataset first."""
        titled: defaultdict[str, list[Content]] = defaultdict(list)
        num_damaged = 0
        for run, summary in self._store.index.summaries(self._runs):
            num_damaged += bool(summary.damaged)
            for each in (summary.content or {}).get("datasets", []):
                titled[each["title"]].append(each | {"run": run})
        groups = [self._group(title, written) for title, written in titled.items()]
        groups.sort(key=lambda group: str(group["datasets"][0]["last_time"]), reverse=True)
        return {"groups": groups, "num_damaged_runs": num_damaged}

    def _group(self, title: str, written: list[Content]) -> Content:
        """Return the datasets of one name or source; equal ones in a row are one dataset."""
        written.sort(key=lambda each: (str(each["time"]), each["run"]))
        rows = [self._dataset([*same]) for _, same in groupby(written, key=lambda each: each["fingerprint"])]
        for before, now in pairwise(rows):
            now["changed"] = _changes(before["metadata"], now["metadata"])
            now["before"] = before["fingerprint"]
        return {"title": title, "num_datasets": len(rows), "datasets": rows[: -_MAX_DATASETS - 1 : -1]}

    def _dataset(self, same: list[Content]) -> Content:
        """Return one dataset, with the pages of the first run that still has them: later ones have seen no change."""
        first = next((each for each in same if self._pages(each)), same[0])
        runs = [{name: each[name] for name in ("run", "task", "time", "is_cached")} for each in reversed(same)]
        return {
            "fingerprint": same[-1]["fingerprint"],
            "metadata": same[-1]["metadata"],
            "uri": same[-1]["uri"],
            "time": same[0]["time"],
            "last_time": same[-1]["time"],
            "runs": runs[:_MAX_RUNS],
            "num_runs": len(runs),
            "pages": self._pages(first),
            "metrics": first["metrics"],
            "before": None,
            "changed": [],
        }

    def _pages(self, dataset: Content) -> list[Content]:
        return [each for each in dataset["pages"] if exists(self._work_dir, each)]


def _changes(before: Content, now: Content) -> list[Content]:
    """Return the entries of the metadata that differ."""
    names = [*dict.fromkeys([*now, *before])]
    return [
        {"name": name, "before": before.get(name), "now": now.get(name)}
        for name in names
        if before.get(name) != now.get(name)
    ]
