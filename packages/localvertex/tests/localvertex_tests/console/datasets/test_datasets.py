"""The datasets that the console shows: those with a fingerprint, by name or source, with what changed."""

from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support.run_records import TASK, run_record, write

from localvertex.api.rest.store import Store
from localvertex.console.datasets import Datasets
from localvertex.console.local_route import LocalCall
from localvertex.store import record

HOSTILE = "<img src=x onerror=alert(1)>"


class Room:
    """The datasets of a work folder."""

    def __init__(self, work_dir: Path) -> None:
        self.work_dir = work_dir
        self._datasets = Datasets(Store(work_dir, lambda _: None))

    def add(self, day: int, fingerprint: Any, *, metadata: Any = (), **fields: Any) -> str:
        """Write a run whose step has written a dataset with its report; a later day means a later run."""
        run, time = f"run-{day:03d}", f"2026-01-{day:02d}T00:00:00.000Z"
        folder = self.work_dir / run / "prepare"
        write(folder / "report.html", f"<p>{day}</p>")
        artifacts = {
            "dataset": [artifact("Dataset", folder / "dataset", {"fingerprint": fingerprint, **dict(metadata)})],
            "report": [artifact("HTML", folder / "report.html", {})],
            "change_metrics": [artifact("Metrics", folder / "metrics", {"num_added": day})],
        }
        given = {"parameters": {"source": "photos"}, "artifacts": {}}
        step = (
            TASK | {"end_time": time, "inputs": given, "outputs": {"parameters": {}, "artifacts": artifacts}} | fields
        )
        write(self.work_dir / run / "run.json", run_record(self.work_dir, run, time, tasks=[step]))
        return run

    def groups(self) -> list[dict[str, Any]]:
        """Return what the page shows."""
        found: list[dict[str, Any]] = self._datasets.list_all(LocalCall())["groups"]
        return found


def artifact(kind: str, path: Path, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the artifact of a step."""
    return {"name": "a", "type": {"schemaTitle": f"system.{kind}"}, "uri": str(path), "metadata": metadata}


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """The datasets of an empty work folder."""
    return Room(tmp_path / "runs")


def test_equal_datasets_in_a_row_are_one_and_each_is_compared_with_the_one_before(room: Room) -> None:
    for day, fingerprint, size in [(1, "a", 10), (2, "a", 10), (3, "b", 12), (4, "a", 10)]:
        room.add(day, fingerprint, metadata={"num_images": size, "classes": ["x"]})
    (group,) = room.groups()
    rows = group["datasets"]
    assert (group["title"], group["num_datasets"]) == ("photos", 3)
    assert [(row["fingerprint"], row["before"], row["num_runs"]) for row in rows] == [
        ("a", "b", 1),
        ("b", "a", 1),
        ("a", None, 2),
    ]
    assert rows[0]["changed"] == [{"name": "num_images", "before": 12, "now": 10}]
    assert rows[2]["changed"] == []
    assert [run["run"] for run in rows[2]["runs"]] == ["run-002", "run-001"]
    # The report of the run that saw the change, not of one that saw none.
    assert rows[2]["pages"] == [{"name": "report", "run": "run-001", "path": "prepare/report.html"}]
    assert rows[2]["metrics"] == {"change_metrics": {"num_added": 1}}


def test_entries_that_appear_and_vanish_are_changes(room: Room) -> None:
    room.add(1, "a", metadata={"gone": 1, "same": {"x": 1}})
    room.add(2, "b", metadata={"new": True, "same": {"x": 1}})
    assert room.groups()[0]["datasets"][0]["changed"] == [
        {"name": "new", "before": None, "now": True},
        {"name": "gone", "before": 1, "now": None},
    ]


def test_a_report_is_shown_while_its_run_has_it_and_after_a_move(room: Room, tmp_path: Path) -> None:
    room.add(1, "a")
    room.add(2, "a")
    (room.work_dir / "run-001/prepare/report.html").unlink()
    assert [page["run"] for page in room.groups()[0]["datasets"][0]["pages"]] == ["run-002"]
    room.work_dir.rename(tmp_path / "moved")
    (dataset,) = Room(tmp_path / "moved").groups()[0]["datasets"]
    assert [page["run"] for page in dataset["pages"]] == ["run-002"]
    (tmp_path / "moved/run-002/prepare/report.html").unlink()
    assert Room(tmp_path / "moved").groups()[0]["datasets"][0]["pages"] == []


def test_a_cached_step_shows_the_pages_of_the_run_that_wrote_them(room: Room) -> None:
    room.add(1, "a")
    tasks = record.read(room.work_dir / "run-001")["tasks"]
    cached = [tasks[0] | {"cache_hit": True, "end_time": "2026-01-02T00:00:00.000Z"}]
    write(
        room.work_dir / "later/run.json", run_record(room.work_dir, "later", "2026-01-02T00:00:00.000Z", tasks=cached)
    )
    (dataset,) = room.groups()[0]["datasets"]
    assert [(run["run"], run["is_cached"]) for run in dataset["runs"]] == [("later", True), ("run-001", False)]
    assert dataset["pages"][0]["run"] == "run-001"


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "gs://bucket/report.html", "../secret.html", "{work_dir}/../secret.html", "{work_dir}/api/token"],
)
def test_a_page_outside_the_work_directory_is_not_shown(room: Room, path: str) -> None:
    (room.work_dir.parent / "secret.html").write_text("secret")
    write(room.work_dir / "api/token", "secret")
    room.add(1, "a")
    (step,) = record.read(room.work_dir / "run-001")["tasks"]
    step["outputs"]["artifacts"]["report"][0]["uri"] = path.format(work_dir=room.work_dir)
    write(
        room.work_dir / "run-001/run.json", run_record(room.work_dir, "run-001", "2026-01-01T00:00:00Z", tasks=[step])
    )
    assert room.groups()[0]["datasets"][0]["pages"] == []


def test_names_come_before_sources_and_without_both_the_step_names_the_dataset(room: Room) -> None:
    room.add(1, "a", metadata={"name": HOSTILE, "source": "s"})
    room.add(2, "b", metadata={"source": "s"})
    room.add(3, "c", inputs={"parameters": {}, "artifacts": {}})
    room.add(4, "d", metadata={"name": 7})
    assert [group["title"] for group in room.groups()] == ["photos", "small / train / dataset", "s", HOSTILE]


def test_datasets_without_a_fingerprint_and_damaged_runs_do_no_harm(room: Room) -> None:
    assert room.groups() == []
    room.add(1, None)
    room.add(2, ["a"])
    room.add(3, "c", metadata={"large": "x" * 5_000, **{f"entry-{number}": number for number in range(500)}})
    write(room.work_dir / "odd/run.json", run_record(room.work_dir, "odd", "2026-01-01", tasks=[{"kind": "step"}]))
    write(room.work_dir / "broken/run.json", "{")
    found = room._datasets.list_all(LocalCall())
    assert found["num_damaged_runs"] == 2
    ((dataset,),) = [group["datasets"] for group in found["groups"]]
    assert len(dataset["metadata"]) == 100
    assert dataset["metadata"]["large"].endswith("… (5,000 characters)")


def test_records_are_not_read_again_while_they_do_not_change(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in range(1, 21):
        room.add(day, f"f{day}")
    first = room.groups()
    original, read = record.read, list[Path]()

    def counted(run_dir: Path) -> dict[str, Any]:
        read.append(run_dir)
        return original(run_dir)

    monkeypatch.setattr(record, "read", counted)
    assert room.groups() == first
    assert read == []
    room.add(20, "other")
    assert room.groups()[0]["datasets"][0]["fingerprint"] == "other"
    assert set(read) == {room.work_dir / "run-020"}
