"""The work on Beam's FnApiRunner, with two worker processes: the same bytes as on this machine, whatever happens."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from tests.support import work_items
from trainer.data.preparing.engines import fn_api
from trainer.data.preparing.engines.beam import Beam

pytestmark = pytest.mark.slow
CALLER = """
import functools, pathlib, sys
from tests.support import work_items
from trainer.data.preparing.engines import fn_api
from trainer.data.preparing.engines.beam import Beam
folder = pathlib.Path(sys.argv[1])
list(Beam(str(folder), fn_api.run).map(functools.partial(work_items.wait, folder), range(2)))
"""
TROUBLED = """
import pathlib, sys
from tests.support.work_items import Troubled
from trainer import command_line, prepare
from trainer.data.preparing import attempt
notes, open_source = pathlib.Path(sys.argv[1]), attempt.open_source
attempt.open_source = lambda *arguments: Troubled(open_source(*arguments), notes)
sys.exit(command_line.run(lambda: prepare.main(sys.argv[2:])))
"""
BEAM = ("--engine=dataflow", "--beam-runner=FnApiRunner")


@pytest.fixture(autouse=True)
def _workers_find_the_tests(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(repository))


def images(folder: Path, number: int) -> Path:
    """Write images of random pixels in four classes, a file that is none, and a link that leads nowhere."""
    pixels = np.random.default_rng(1).integers(0, 256, (number, 32, 32, 3), dtype=np.uint8)
    for index in range(number):
        path = folder / f"class-{index % 4}" / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[index]).save(path, compress_level=0)
    (folder / "class-0" / "none.png").write_bytes(b"none")
    (folder / "class-0" / "broken.png").symlink_to("nowhere")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """The content of each file of a dataset, and its report."""
    paths = [*sorted(folder.iterdir()), folder.with_suffix(".html")]
    return {path.name.replace(folder.name, "output"): path.read_bytes() for path in paths}


def without_progress(text: str) -> list[str]:
    """The lines that do not depend on how long the run takes."""
    return [
        line for line in text.splitlines() if not re.match(r"(listing|reading|computing statistics|writing): ", line)
    ]


def test_failing_killed_and_slow_workers_give_the_same_bytes(
    tmp_path: Path, repository: Path, beam_python: str
) -> None:
    """As in this environment, which has no Beam; where bubblewrap works, without a network: nothing is downloaded."""
    source, notes = images(tmp_path / "source", 20_000), tmp_path / "notes"
    notes.mkdir()
    without_network = [shutil.which("bwrap") or "", *"--unshare-net --dev-bind / / --die-with-parent".split()]
    if not without_network[0] or subprocess.run([*without_network, "true"], check=False).returncode:
        without_network = []
    arguments = [beam_python, "-c", TROUBLED, notes, source, tmp_path / "beam", *BEAM]
    done = subprocess.run([*without_network, *arguments], capture_output=True, text=True, cwd=repository, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(map(int, os.listdir(notes))) == [100, 2500, 3000, 9000]
    local = subprocess.run(
        [sys.executable, "-m", "trainer.prepare", source, tmp_path / "local"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == local.stdout.replace("local.html", "beam.html")
    assert without_progress(done.stderr) == without_progress(local.stderr)
    assert files(tmp_path / "beam") == files(tmp_path / "local")


def test_an_error_of_a_bucket_is_the_one_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], beam_python: str
) -> None:
    monkeypatch.setattr(sys, "executable", beam_python)
    monkeypatch.setattr(fn_api, "_NUM_ATTEMPTS", 1)
    with pytest.raises(PermissionError, match=r"^\[Errno 13\] Permission denied: 'gs://bucket/0'$"):
        list(Beam(str(tmp_path), fn_api.run).map(work_items.forbid, range(1)))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.rglob("*.*")) == []


def test_no_worker_outlives_a_killed_caller(tmp_path: Path, repository: Path, beam_python: str) -> None:
    caller = subprocess.Popen([beam_python, "-c", CALLER, tmp_path], cwd=repository)
    notes = [tmp_path / f"{number}.waits" for number in range(2)]
    job: list[psutil.Process] = []
    # The job and its two workers, of which one is at work.
    while len(job) < 3 or not any(note.exists() and note.read_text() for note in notes):
        assert caller.poll() is None
        time.sleep(0.01)
        job = psutil.Process(caller.pid).children(recursive=True)
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    assert psutil.wait_procs(job, timeout=300)[1] == []
