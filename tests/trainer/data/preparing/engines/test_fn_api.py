"""The work on Beam's FnApiRunner, with two worker processes: the same bytes as on this machine, whatever happens."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from PIL import Image

from tests.support import work_items
from trainer import prepare
from trainer.command_line import TrainingError
from trainer.data.preparing.engines import fn_api
from trainer.data.preparing.engines.beam import Beam
from trainer.data.sources.factory import open_source
from vertex_gpu_training.userinput.errors import UserError

pytestmark = pytest.mark.slow
CALLER = """
import functools, pathlib, sys
from tests.support import work_items
from trainer.data.preparing.engines import fn_api
from trainer.data.preparing.engines.beam import Beam
folder = pathlib.Path(sys.argv[1])
list(Beam(str(folder), fn_api.run).map(functools.partial(work_items.wait, folder), range(2)))
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


def run(source: Path, output: Path, **options: Any) -> dict[str, Any]:
    page = output.with_suffix(".html")
    return prepare.prepare(
        source=str(source), output_directory=str(output), report_path=str(page), image_size=32, **options
    )


def files(folder: Path) -> dict[str, bytes]:
    """The content of each file of a dataset, and its report."""
    paths = [*sorted(folder.iterdir()), folder.with_suffix(".html")]
    return {path.name.replace(folder.name, "output"): path.read_bytes() for path in paths}


def test_failing_killed_and_slow_workers_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    source, notes = images(tmp_path / "source", 20_000), tmp_path / "notes"
    notes.mkdir()
    expected = run(source, tmp_path / "local")
    note = capfd.readouterr().err
    monkeypatch.setattr(prepare, "open_source", lambda *given: work_items.Troubled(open_source(*given), notes))
    assert run(source, tmp_path / "beam", prepare_engine="dataflow", beam_runner="FnApiRunner") == expected
    assert sorted(map(int, os.listdir(notes))) == [100, 2500, 3000, 9000]
    assert files(tmp_path / "beam") == files(tmp_path / "local")
    assert capfd.readouterr().err == note
    assert expected["num_bad_files"] == 2


def test_nothing_is_downloaded(tmp_path: Path, repository: Path) -> None:
    """Without a network, by the command line; the whole environment is that of this process."""
    without_network = [shutil.which("bwrap") or "", *"--unshare-net --dev-bind / / --die-with-parent".split()]
    if not without_network[0] or subprocess.run([*without_network, "true"], check=False).returncode:
        pytest.skip("bubblewrap is not installed, or cannot run here")
    source = images(tmp_path / "source", 40)
    expected = run(source, tmp_path / "local")
    command = [sys.executable, "-m", "trainer.prepare", source, tmp_path / "beam", *BEAM]
    done = subprocess.run([*without_network, *command], check=True, capture_output=True, text=True, cwd=repository)
    assert f"fingerprint: {expected['fingerprint']}" in done.stdout
    assert done.stderr.count("\n") == 1
    assert files(tmp_path / "beam") == files(tmp_path / "local")


@pytest.mark.parametrize(
    ("function", "kind", "line"),
    [
        (work_items.refuse, UserError, r"^number \d cannot be used; give another one$"),
        (work_items.forbid, PermissionError, r"Permission denied: 'gs://bucket/\d'$"),
        (
            work_items.kill,
            TrainingError,
            r"^2 work items have no result after 1 attempts on FnApiRunner \(.*137.*memory$",
        ),
    ],
)
def test_what_fails_each_time_is_one_line(
    function: Any,
    kind: type[Exception],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(fn_api, "_NUM_ATTEMPTS", 1)
    with pytest.raises(kind, match=line):
        list(Beam(str(tmp_path), fn_api.run).map(function, range(2)))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_no_worker_outlives_a_killed_caller(tmp_path: Path, repository: Path) -> None:
    caller = subprocess.Popen([sys.executable, "-c", CALLER, tmp_path], cwd=repository)
    notes = [tmp_path / f"{number}.waits" for number in range(2)]
    while not any(note.exists() and note.read_text() for note in notes):
        assert caller.poll() is None
        time.sleep(0.01)
    job = psutil.Process(caller.pid).children(recursive=True)
    assert len(job) >= 3
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    assert psutil.wait_procs(job, timeout=60)[1] == []
