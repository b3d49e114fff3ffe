"""The records of pipeline jobs and runs as lists read them: what they contain, and when they have changed."""

import os
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from pathlib import Path

from localvertex.api.pipeline_jobs.view import list_view, searchable
from localvertex.api.rest.call import Call
from localvertex.api.rest.index import AT_REST, MISSING, Signature, signature
from localvertex.api.rest.records import Resource, StoredRecords, Viewed
from localvertex.api.rest.store import Store
from localvertex.store import journal, record

_LARGE_FIELDS = frozenset({"pipelineSpec", "runtimeConfig", "jobDetail"})


def job_records(
    store: Store,
    collection: str,
    stand_in: Callable[[Call, str, str], Resource],
    complete: Callable[[Resource], Resource],
) -> StoredRecords:
    """Return the records of the jobs; lists contain a job if its run exists."""
    work_dir = store.folder.parent

    def view(job: Resource) -> Viewed:
        run_dir = work_dir / job["name"].rpartition("/")[2]
        return list_view(job, run_dir) if (run_dir / record.FILE).is_file() else Viewed(resource=None)

    return StoredRecords(
        store=store,
        collection=collection,
        large=_LARGE_FIELDS,
        searchable=searchable,
        stand_in=stand_in,
        complete=complete,
        view=view,
        folders=str(work_dir),
        other_files=lambda job_id: _record_signature(f"{work_dir}/{job_id}"),
        live_of=lambda job_id: _live_state(work_dir / job_id),
    )


def _record_signature(run_dir: str) -> Signature:
    return signature(f"{run_dir}/{record.FILE}")


def _live_state(run_dir: Path) -> str:
    """Return what a record depends on besides run.json until its run has ended: its journals and its lock."""
    journals = [f"{each.name} {signature(str(each))[0]}" for each in sorted(run_dir.glob(journal.PATTERN))]
    if record.is_running(run_dir):
        return " ".join(["running", *journals])
    return " ".join(journals) or AT_REST


class RunFiles:
    """The files of the runs of a work folder, including those that the server did not start."""

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir

    @property
    def lists(self) -> Iterable[str]:
        """The folder with a folder for each run."""
        return [str(self._work_dir)]

    def folder_of(self, resource_id: str) -> str:
        """Return the folder of a run."""
        return f"{self._work_dir}/{resource_id}"

    def ids(self) -> Set[str]:
        """Return the names of all folders in the work folder."""
        with suppress(FileNotFoundError), os.scandir(self._work_dir) as entries:
            return {each.name for each in entries if each.is_dir(follow_symlinks=False)}
        return set()

    def signatures(self, ids: Iterable[str]) -> dict[str, Signature]:
        """Return the signatures of the runs among these folders by their names."""
        found = {each: _record_signature(folder) for each in ids if not os.path.islink(folder := self.folder_of(each))}
        return {name: each for name, each in found.items() if each != MISSING}

    def live(self, resource_id: str) -> str:
        """Return the present `Summary.live`."""
        return _live_state(self._work_dir / resource_id)
