"""A bucket that fails or a disk that fills up while prepare runs: one line, nothing half-written, and a later start."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.modules import call_module
from tests.trainer.test_prepare import files, folder
from vertex_testing.cloud_storage.server import CloudStorage

METADATA = "out/dataset.json"
PHASES = {
    "listing what is in the output folder": r"GET .*/o\?.*prefix=out",
    "reading the history": r"GET .*latest\.json",
    "listing parts": r"GET .*/o\?.*prefix=root",
    "writing a part": r"(POST|PUT) .*root.*parts",
    "writing the history": r"(POST|PUT) .*latest\.json",
    "listing": r"GET .*/o\?.*prefix=source",
    "reading": r"GET .*/o/source.*alt=media",
    "writing a shard": r"(POST|PUT) .*images-train",
    "writing the list of images": r"(POST|PUT) .*images\.jsonl",
    "publishing": r"(POST|PUT) .*dataset\.json",
    "writing the report": r"(POST|PUT) .*report\.html",
}
"""Phase of a run -> its requests."""


@pytest.fixture
def source(server: CloudStorage, tmp_path: Path) -> dict[str, bytes]:
    """A source in the bucket; returns the dataset that a run without faults makes of it."""
    server.buckets.create("faults")
    taken(server)
    for path in folder(tmp_path / "source").rglob("*.png"):
        server.buckets.put("faults", str(path.relative_to(tmp_path)), path.read_bytes())
    assert prepare() == (0, [])
    return taken(server)


def prepare() -> tuple[int, list[str]]:
    """Run the command, and return its exit code and the lines of stderr, without notes."""
    words = ["gs://faults/source", "gs://faults/out", "--report=gs://faults/report.html", "--image-size=16"]
    words.append("--pipeline-root=gs://faults/root")
    done = call_module("trainer.prepare", *words)
    return done.returncode, [line for line in done.stderr.splitlines() if not line.startswith("note: ")]


def taken(server: CloudStorage) -> dict[str, bytes]:
    """Return the objects of the dataset and its report, and remove them."""
    names = [name for name in server.buckets.names("faults") if not name.startswith("source/")]
    found = {name: server.buckets.get("faults", name).data for name in names}
    for name in names:
        server.buckets.delete("faults", name)
    server.faults.clear()
    assert not [name for name in found if name.startswith("root/") and not name.endswith("/latest.json")]
    return {name: content for name, content in found.items() if not name.startswith("root/")}


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_a_bucket_that_fails_ends_in_one_line_and_the_next_start_succeeds(
    server: CloudStorage, source: dict[str, bytes], phase: str
) -> None:
    for status in (403, 429, 503):
        server.faults.fail(10_000, status, matching=PHASES[phase])
        code, lines = prepare()
        assert (code, len(lines)) in ((1, 1), (2, 1)), lines
        assert "gs://faults/" in lines[0]
        assert METADATA not in server.buckets.names("faults")
        server.faults.clear()
        assert prepare() == (0, [])
        assert taken(server) == source


def test_passing_failures_and_halves_of_answers_change_nothing(server: CloudStorage, source: dict[str, bytes]) -> None:
    # One kind at a time, because the tests allow few attempts.
    kinds = [
        lambda pattern: server.faults.fail(1, 503, matching=pattern),
        lambda pattern: server.faults.cut_answer(10, matching=pattern),
        lambda pattern: server.faults.drop_upload(100, matching=pattern),
    ]
    for add in kinds:
        for phase, pattern in PHASES.items():
            # The library reads the text of a 404 after its last attempt, so half of it ends a run.
            if phase != "reading the history":
                add(pattern)
        code, lines = prepare()
        assert code == 0, lines
        assert taken(server) == source


def test_halves_of_all_answers_are_no_images(server: CloudStorage, source: dict[str, bytes]) -> None:
    server.faults.cut_answer(10, matching=PHASES["reading"], count=10_000)
    code, lines = prepare()
    assert (code, len(lines)) == (2, 1)
    assert "24 of 24 images of 'gs://faults/source' are bad" in lines[0]
    assert not taken(server)


FULL_DISKS = """
import os, subprocess, sys
from pathlib import Path
from tests.support.modules import call_module
folder, source, output, first, last = sys.argv[1:6]
disk, parent = Path(folder) / "disk", Path(output).parent
disk.mkdir()
def mount(size, *options):
    command = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}k", *options]), "none", str(disk)]
    subprocess.run(command, check=True)
mount(first)
os.environ["TMPDIR"] = str(disk)
parent.mkdir(exist_ok=True)
num_refused, size = 0, int(first)
while True:
    done = call_module("trainer.prepare", source, output, "--image-size=64", *sys.argv[6:])
    if done.returncode == 0:
        break
    print(size, done.stderr.strip(), file=sys.stderr)
    assert done.returncode == 1, (size, done)
    (line,) = done.stderr.splitlines()
    assert line.startswith("failed: ") and line.endswith("No space left on device; free some space and run again"), line
    assert not os.listdir(parent), (size, os.listdir(parent))
    assert not os.listdir(disk) or parent.parent == disk, (size, os.listdir(disk))
    num_refused += 1
    size = int(size * 1.15) + 1
    assert size < int(last)
    mount(size, "remount")
print(num_refused)
"""
"""Runs with disks of growing size, so each phase meets a full one."""


@pytest.mark.slow
@pytest.mark.parametrize("on_disk", ["temporary files", "dataset"])
def test_a_full_disk_at_every_phase(tmp_path: Path, on_disk: str) -> None:
    tried = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(tried, check=False, capture_output=True).returncode:
        pytest.skip("needs a namespace in which a small disk can be mounted")
    source = folder(tmp_path / "source")
    output = tmp_path / ("disk" if on_disk == "dataset" else "elsewhere") / "outputs" / "out"
    if on_disk != "dataset":
        output.parent.mkdir(parents=True)
    words = [sys.executable, "-c", FULL_DISKS, str(tmp_path), str(source), str(output), "4", "4000"]
    done = subprocess.run(["unshare", "-rm", *words], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
    if on_disk != "dataset":
        assert call_module("trainer.prepare", str(source), str(tmp_path / "again"), "--image-size=64").returncode == 0
        assert files(output) == files(tmp_path / "again")
