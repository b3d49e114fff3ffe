"""A killed prepare is continued: the same bytes, no image read twice, nothing left behind."""

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.growing import InBucket, Local, Place, content, fill, png
from vertex_testing.cloud_storage.server import CloudStorage

pytestmark = pytest.mark.slow(first=True)
PREPARING = "trainer.data.preparing"
POINTS = {
    "before the first part": [f"{PREPARING}.parts", "commit", "before", 1],
    "between bytes and rows of a part": [f"{PREPARING}.parts", "storage.write_file", "after", 2],
    "after a part": [f"{PREPARING}.parts", "commit", "after", 2],
    "before the last part": [f"{PREPARING}.parts", "commit", "before", 3],
    "after the rows": [f"{PREPARING}.attempt", "gather", "after", 1],
    "after the splits": [f"{PREPARING}.rows", "Rows.set_splits", "after", 1],
    "after the list of images": [f"{PREPARING}.attempt", "_refuse_bad", "before", 1],
    "within the shards": [f"{PREPARING}.shards", "write", "after", 2],
    "before dataset.json": [f"{PREPARING}.dataset_files", "storage.write_json", "before", 1],
    "after the report": ["trainer.files.outputs", "write", "after", 1],
    "before the history": [f"{PREPARING}.previous.history", "History.write", "before", 1],
    "before it is published": [f"{PREPARING}.previous.history", "History.write", "after", 1],
    "after it is published": [f"{PREPARING}.parts", "remove", "before", 1],
    "while the parts are removed": [f"{PREPARING}.parts", "storage.remove", "after", 3],
    "before it counts as published": [f"{PREPARING}.previous.history", "History.write", "before", 2],
}
IN_BUCKET = {
    "before the last upload": ["exact_resume.files.publication", "_upload_file", "before", 6],
    "after a part": [f"{PREPARING}.parts", "commit", "after", 2],
    "after it is published": [f"{PREPARING}.previous.history", "History.write", "before", 2],
}


class Program:
    """Runs of prepare in processes of their own."""

    def __init__(self, process: "subprocess.Popen[str]", temporary: Path) -> None:
        self._process = process
        self.temporary = temporary

    def run(self, place: Place, name: str, kill: list[Any] | float | None = None, **options: Any) -> int:
        """Return the signal that ended the run, or 0."""
        wanted = {
            "source": f"{place.address}/source",
            "output_directory": f"{place.address}/out/{name}",
            "report_path": f"{place.address}/out/{name}.html",
            "image_size": 16,
            "pipeline_root": f"{place.address}/root",
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"kill": kill, "options": wanted | options}) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        assert status in (0, signal.SIGKILL), status
        return status


@contextlib.contextmanager
def program(temporary: Path, **variables: str) -> Iterator[Program]:
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.killed_prepare"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables, "TMPDIR": str(temporary)},
    ) as process:
        yield Program(process, temporary)
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def local_program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with program(tmp_path_factory.mktemp("killed") / "tmp") as started:
        yield started


def grown(place: Place, started: Program) -> None:
    """A dataset, a source with more and fewer images, and what a full run makes of it."""
    fill(place)
    assert started.run(place, "before") == 0
    for number in range(9):
        place.write(f"source/a/new{number}.png", png(5000 + number))
    place.remove("source/b/3.png")
    place.write("source/b/4.png", png(6000))
    place.copy_tree("root", "full-root")
    assert started.run(place, "full", reread=True, pipeline_root=f"{place.address}/full-root") == 0


def check_end(place: Place, started: Program) -> None:
    """The dataset is complete, and only its files were added."""
    assert content(place, "out/out") == content(place, "out/full")
    (state,) = {path.partition("/")[0] for path in place.paths("root/prepared")}
    assert place.paths("root/prepared") == [f"{state}/latest.json"]
    assert os.listdir(started.temporary) == []
    kept = {path.partition("/")[0] for path in place.paths("out")}
    assert kept == {"before", "full", "out", "before.html", "full.html", "out.html"}


@pytest.fixture(scope="module")
def grown_folder(tmp_path_factory: pytest.TempPathFactory, local_program: Program) -> Path:
    folder = tmp_path_factory.mktemp("grown")
    grown(Local(folder), local_program)
    return folder


@pytest.fixture
def local(grown_folder: Path) -> Iterator[Local]:
    """The folder before the killed run; moving it would change the identities of the images."""
    place = Local(grown_folder)
    state = {path: place.read(f"root/{path}") for path in place.paths("root")}
    yield place
    for path in place.paths("root"):
        (grown_folder / "root" / path).unlink()
    for path, data in state.items():
        place.write(f"root/{path}", data)
    for path in place.paths("out/out"):
        (grown_folder / "out" / "out" / path).unlink()
    (grown_folder / "out" / "out").rmdir()
    (grown_folder / "out" / "out.html").unlink()


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_each_point_is_made_good(local: Local, local_program: Program, point: str) -> None:
    assert local_program.run(local, "out", POINTS[point]) == signal.SIGKILL
    assert local_program.run(local, "out") == 0
    check_end(local, local_program)


@pytest.mark.soak
def test_random_kills_are_made_good(local: Local, local_program: Program) -> None:
    rng = random.Random(15)
    pauses = [0.02, *(rng.uniform(0.05, 0.6) for _ in range(4))]
    # On a fast machine, one of the runs may end before its kill.
    ends = list(itertools.takewhile(bool, (local_program.run(local, "out", pause) for pause in pauses)))
    assert ends
    assert len(ends) < len(pauses) or local_program.run(local, "out") == 0
    check_end(local, local_program)


@pytest.fixture
def server_program(server: CloudStorage, tmp_path: Path) -> Iterator[Program]:
    with program(tmp_path / "tmp", **server.environment) as started:
        yield started


@pytest.mark.soak
def test_kills_with_a_bucket_are_made_good(server: CloudStorage, server_program: Program) -> None:
    place = InBucket(server)
    grown(place, server_program)
    state = {path: place.read(f"root/{path}") for path in place.paths("root")}
    for point, kill in IN_BUCKET.items():
        assert server_program.run(place, "out", kill) == signal.SIGKILL, point
        assert server_program.run(place, "out") == 0
        check_end(place, server_program)
        for path in place.paths("out/out"):
            place.remove(f"out/out/{path}")
        for path, data in state.items():
            place.write(f"root/{path}", data)
        place.remove("out/out.html")
