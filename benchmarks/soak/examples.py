"""Interrupts the examples of exact_resume: `python -m benchmarks.soak.examples --num-faults 100 --seed 1`.

Each part is a run of one example; those with PyTorch need `make venv-torch`, and have two workers or, Hugging Face's
Trainer, one or two. It is killed or frozen in a step that is drawn, in its first second, before or after a part of a
save, or in an evaluation of the Trainer; it gets SIGTERM or a notice of preemption;
its disk is full; between two starts its newest checkpoint may be torn, or a bit of it flipped. Of two workers, one or
both are hit; those that have not ended soon afterwards are killed, because Vertex AI restarts all. In the end the
weights are those of an undisturbed run, each step had the same examples however often it was repeated, none is missing,
and the run counts as finished.
"""

import contextlib
import functools
import http.server
import json
import math
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.soak import small_disks
from benchmarks.soak.record import Fault, Soak, options
from exact_resume.checkpoints import checkpoints, manifest, result_file
from vertex_testing import kill_point

_ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((_ROOT / "packages" / "exact_resume" / "examples").glob("*.py"))
TORCH = _ROOT / ".venv-torch" / "bin" / "python"
_NUM_WORKERS = {"torch_ddp": (2,), "hugging_face_digits": (1, 2)}
"""Of the examples that use PyTorch."""
_NUM_FAULTS, _FAULTS_PER_RUN = 25, 5
"""Of an example, and of one of its runs."""
_KINDS = (
    *("SIGKILL", "SIGKILL", "killed in its first second", "killed in a save", "SIGTERM", "notice, then killed"),
    *("frozen", "torn", "bit flipped", "full disk"),
)
_POINTS = (
    ("exact_resume.checkpoints.checkpoints", "save"),
    ("exact_resume.checkpoints.checkpoints", "prune"),
    ("exact_resume.checkpoints.manifest", "write"),
    ("exact_resume.files.publication", "Fence.write"),
)
"""Module and name of parts of a save."""
_IN_EVALUATION = "killed in the evaluation"
_EVALUATION_POINTS = [("transformers.trainer", f"Trainer.{name}") for name in ("evaluation_loop", "prediction_step")]
_GRACE_SECONDS = 20.0
"""For the other worker to notice a lost one; one that has not met it yet would wait for longer."""
_Processes = list["subprocess.Popen[str]"]


class _Ended(NamedTuple):
    weights: set[str]
    """Last line of each worker."""
    examples: Mapping[str, Mapping[int, str]]
    """Of each step, by the name of the worker's file."""


def main() -> int:
    """Interrupt runs; return 1 if one of them ended otherwise."""
    can_fill = small_disks.enter_namespace("examples")
    examples = [
        (example, num_workers)
        for example in EXAMPLES
        for num_workers in _NUM_WORKERS.get(example.stem, (1,))
        if TORCH.exists() or example.stem not in _NUM_WORKERS
    ]
    if not TORCH.exists():
        print(f"without the examples of PyTorch: {TORCH} does not exist; run: make venv-torch", flush=True)
    given = options("examples", __doc__, num_faults=_NUM_FAULTS * len(examples), smoke_values={"num_faults": 3})
    # Sums in another order would give other bits.
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3", NO_GCE_CHECK="1")
    soak = Soak("examples", given)

    @functools.cache
    def undisturbed(example: Path, num_workers: int) -> _Ended:
        folder = soak.folder / f"undisturbed-{example.stem}-{num_workers}"
        return _Run(example, num_workers, folder, can_fill=False).finish()

    def interrupt(number: int) -> list[Fault]:
        (example, num_workers), draw = examples[number % len(examples)], random.Random(f"{given.seed}-{number}")
        expected = undisturbed(example, num_workers)
        # The faults of a run fall into its whole length.
        most_steps = max(map(len, expected.examples.values())) // (_FAULTS_PER_RUN - 1)
        run = _Run(example, num_workers, folder := soak.folder / f"run-{number}", can_fill=can_fill)
        try:
            faults = [run.disturb(draw, most_steps) for _ in range(min(_FAULTS_PER_RUN, given.num_faults))]
            found = run.finish()
            assert found == expected, f"{found} instead of {expected}"
            assert result_file.is_finished(str(run.directory))
        except Exception:
            soak.keep(folder, number)
            raise
        finally:
            run.remove()
        about = f"{example.stem}, {num_workers} worker(s)"
        return [Fault(f"{kind}, {about}", outcome) for kind, outcome in faults]

    return soak.run(interrupt)


class _Run:
    """A run of an example in a folder, and the disk of its checkpoints."""

    def __init__(self, example: Path, num_workers: int, folder: Path, *, can_fill: bool) -> None:
        self._example, self._folder, self._can_fill, self._num_noted_before = example, folder, can_fill, 0
        self._num_workers = num_workers
        self.directory = folder / "run"
        self.directory.mkdir(parents=True)
        if can_fill:
            small_disks.mount(self.directory)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port = listener.getsockname()[1]

    def remove(self) -> None:
        if self._can_fill:
            small_disks.unmount(self.directory)
        shutil.rmtree(self._folder, ignore_errors=True)

    def finish(self) -> _Ended:
        """Start the program, and wait for its end."""
        processes = self._start({})
        texts = [process.communicate(timeout=600) for process in processes]
        for process, (_, stderr) in zip(processes, texts, strict=True):
            assert process.returncode == 0, stderr[-3000:]
        examples: dict[str, dict[int, str]] = {}
        for path in self._folder.glob("seen*"):
            steps = examples[path.name] = {}
            for line in path.read_text().splitlines():
                step, _, found = line.partition(" ")
                assert steps.setdefault(int(step), found) == found, f"step {step} was repeated with other examples"
            assert sorted(steps) == list(range(len(steps)))
        assert len(examples) == self._num_workers
        return _Ended({stdout.splitlines()[-1] for stdout, _ in texts}, examples)

    def disturb(self, draw: random.Random, most_steps: int) -> tuple[str, str]:
        """Start the program, disturb it, and wait until it has ended; return the kind of fault and the outcome."""
        kinds = [*_KINDS, *([_IN_EVALUATION] * 2 if "hugging" in self._example.name else [])]
        kind = draw.choice([kind for kind in kinds if self._can_fill or kind != "full disk"])
        num_steps, seconds = draw.randrange(most_steps), draw.random()
        hit = draw.choice([[rank] for rank in range(self._num_workers)] + [list(range(self._num_workers))])
        filler = self.directory / "filler"
        points = {"killed in a save": _POINTS, _IN_EVALUATION: _EVALUATION_POINTS}.get(kind, ())
        variables = self._kill_point(draw, points) if points else {}
        if kind == "full disk":
            small_disks.fill(filler)
        with _MetadataServer() as server:
            if kind == "notice, then killed":
                variables = {"GCE_METADATA_HOST": f"127.0.0.1:{server.server_port}"}
            processes = self._start(variables)
            if kind == "killed in its first second":
                time.sleep(seconds)
            elif not points and kind != "full disk":
                self._wait_for_steps(processes, num_steps)
            if kind == "notice, then killed":
                server.has_notice.set()
                time.sleep(1 + seconds)
        if not points and kind != "full disk":
            _signal(kind, [processes[rank] for rank in hit])
        codes = _wait(processes)
        filler.unlink(missing_ok=True)
        (self._folder / "point.json").unlink(missing_ok=True)
        outcome = f"exit code {' and '.join(map(str, sorted(codes)))}"
        if kind in ("torn", "bit flipped"):
            outcome = _damage(self.directory, draw, is_torn=kind == "torn")
        return kind, outcome

    def _wait_for_steps(self, processes: _Processes, num_steps: int) -> None:
        """Wait until the first worker has done more steps since its start, or has ended."""
        while processes[0].poll() is None and self._num_noted() <= self._num_noted_before + num_steps:
            time.sleep(0.01)

    def _num_noted(self) -> int:
        first = sorted(self._folder.glob("seen*"))[:1]
        return sum(path.read_bytes().count(b"\n") for path in first)

    def _start(self, variables: Mapping[str, str]) -> _Processes:
        self._num_noted_before = self._num_noted()
        python = str(TORCH) if self._example.stem in _NUM_WORKERS else sys.executable
        started = []
        for rank in range(self._num_workers):
            own = {"EXAMPLES_SEEN": str(self._folder / "seen"), **variables}
            if self._num_workers > 1:
                own |= {"RANK": str(rank), "WORLD_SIZE": str(self._num_workers), "MASTER_ADDR": "127.0.0.1"}
                own["MASTER_PORT"] = str(self._port)
            words = [python, str(self._example), str(self.directory)]
            pipe = subprocess.PIPE
            started.append(subprocess.Popen(words, env=os.environ | own, stdout=pipe, stderr=pipe, text=True))
        return started

    def _kill_point(self, draw: random.Random, points: Sequence[tuple[str, str]]) -> dict[str, str]:
        code = self._folder / "code"
        code.mkdir(exist_ok=True)
        shutil.copy(Path(*kill_point.__path__) / "sitecustomize.py", code)
        module, name = draw.choice(points)
        point = {"module": module, "name": name, "when": draw.choice(("before", "after")), "is_run": False}
        (self._folder / "point.json").write_text(json.dumps(point))
        return {"PYTHONPATH": str(code)}


def _signal(kind: str, processes: _Processes) -> None:
    for process in processes:
        if kind == "frozen":
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.5)
        process.send_signal(signal.SIGTERM if kind == "SIGTERM" else signal.SIGKILL)


def _wait(processes: _Processes) -> Sequence[int]:
    """Wait until all have ended; kill those that wait for one that has failed."""
    readers = [threading.Thread(target=process.communicate) for process in processes]
    for reader in readers:
        reader.start()
    began, failed_at = time.monotonic(), math.inf
    while any(process.poll() is None for process in processes):
        assert time.monotonic() < began + 600, "the processes have not ended"
        if any(process.poll() for process in processes):
            failed_at = min(failed_at, time.monotonic())
        if time.monotonic() > failed_at + _GRACE_SECONDS:
            for process in processes:
                process.kill()
        time.sleep(0.1)
    for reader in readers:
        reader.join()
    return [134 if process.returncode == -signal.SIGABRT else process.returncode for process in processes]


class _MetadataServer(http.server.ThreadingHTTPServer):
    """Announces a preemption on loopback, as Compute Engine's metadata server does."""

    daemon_threads, block_on_close = True, False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Metadata)
        self.has_notice = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()


class _Metadata(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer the first request for the key once there is a notice, and no other."""
        assert isinstance(self.server, _MetadataServer)
        if "preempted" not in self.path or "last_etag=0" not in self.path or not self.server.has_notice.wait(600):
            time.sleep(30)
        self.send_response(200)
        for name, value in {"Metadata-Flavor": "Google", "ETag": "1", "Content-Length": "4"}.items():
            self.send_header(name, value)
        # The program may have ended meanwhile.
        with contextlib.suppress(OSError):
            self.end_headers()
            self.wfile.write(b"TRUE")

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


def _damage(folder: Path, draw: random.Random, *, is_torn: bool) -> str:
    """Damage a file of the newest checkpoint."""
    steps = checkpoints.steps(str(folder))
    if not steps:
        return "no checkpoint yet"
    path = folder / manifest.name(steps[0]) / draw.choice((manifest.MANIFEST_FILE, checkpoints.VARIABLES_FILE))
    content = bytearray(path.read_bytes())
    position = draw.randrange(len(content))
    if is_torn:
        del content[position:]
    else:
        content[position] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"{path.name} of the newest checkpoint"


if __name__ == "__main__":
    sys.exit(main())
