"""The TensorBoard logs of custom jobs, which become an experiment when their job has ended."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from localvertex.api.rest.call import Location
from localvertex.api.rest.errors import ApiError
from localvertex.api.rest.operations import Operations
from localvertex.api.rest.store import Store
from localvertex.api.tensorboards import event_files, points, records
from localvertex.api.tensorboards.place import EXPERIMENT, RUN, TIME_SERIES, Place
from localvertex.api.tensorboards.resources import Resources


class JobLogs:
    """Fills the tensorboards that custom jobs name."""

    def __init__(self, store: Store, operations: Operations, log: Callable[[str], None]) -> None:
        self._store, self._log = store, log
        self._experiments, self._runs, self._series = (
            Resources(kind, store, operations) for kind in (EXPERIMENT, RUN, TIME_SERIES)
        )

    def collect(self, job: dict[str, Any], folder: Path) -> None:
        """Write the scalars of a job into its tensorboard, as an experiment with the id of the job.

        Args:
            job: The CustomJob resource.
            folder: Its log folder.
        """
        number = job.get("name", "").rpartition("/")[2]
        name = job.get("jobSpec", {}).get("tensorboard", "")
        if not name:
            return
        try:
            num = self._collect(name, job, folder)
            self._log(f"customJobs/{number}: {num} scalars of {folder} are in {name}")
        except Exception as error:  # whatever a job has logged, it does not change how the job ends
            self._log(f"customJobs/{number}: warning: {folder} is not in {name}: {error}")

    def _collect(self, name: str, job: dict[str, Any], folder: Path) -> int:
        """Return the number of points that were written."""
        project, location, number = (job["name"].split("/")[index] for index in (1, 3, 5))
        tensorboard = Place.of_name(name, Place(Location(project=project, region=location)), 1)
        records.find(self._store, tensorboard)
        found = event_files.scalars(folder, lambda text: self._log(f"customJobs/{number}: warning: {text}"))
        if not found:
            return 0
        experiment = tensorboard.child(number)
        with self._store.lock:
            self._experiments.create_all([(tensorboard, number, {"displayName": job["displayName"]})])
            try:
                points.append(self._files(experiment, found))
            except (OSError, ApiError):
                # Nothing of the job is better than a part of it.
                self._experiments.remove(experiment)
                raise
        return sum(len(values) for tags in found.values() for values in tags.values())

    def _files(self, experiment: Place, found: event_files.Scalars) -> dict[Path, list[points.Point]]:
        """Create the runs and time series, and return their points by file."""
        self._runs.create_all([(experiment, run, {"displayName": run}) for run in found])
        places = [(experiment.child(run), tag) for run, tags in found.items() for tag in tags]
        content = {"valueType": "SCALAR", "pluginName": "scalars"}
        created = self._series.create_all([(run, "", content | {"displayName": tag}) for run, tag in places])
        series = [run.child(each["name"].rpartition("/")[2]) for (run, _), each in zip(places, created, strict=True)]
        files = [records.points_file(self._store, each) for each in series]
        return dict(zip(files, (found[run.id][tag] for run, tag in places), strict=True))
