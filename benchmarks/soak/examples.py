"""Interrupts the examples of exact_resume: `python -m benchmarks.soak.examples --num-faults 100 --seed 1`.

Each part is a run of one example. Those with PyTorch run if this is started by the interpreter of `make venv-torch`,
as forks of one process, with one or two workers, and those with a trainer accumulate gradients over two batches. A run
is killed or frozen in a step that is drawn, in its first second, before or after a part of a save, in an evaluation, or
between the batches of an accumulated gradient; it gets SIGTERM or a notice of preemption; its disk is full; another
start takes over from a frozen one, which continues; between two starts its newest checkpoint may be torn, or a bit of
it flipped. Of two workers, one or both are hit; those that have not ended soon afterwards are killed, because Vertex AI
restarts all. In the end the weights are those of an undisturbed run, each step had the same examples however often it
was repeated, none is missing, and the run counts as finished.
"""

import contextlib
import functools
import http.server
import importlib
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
from typing import Any, NamedTuple

from benchmarks.soak import small_disks
from benchmarks.soak.forked import Forked
from benchmarks.soak.record import Fault, Soak, options
from exact_resume.checkpoints import checkpoints, manifest, result_file
from vertex_testing import kill_point

_ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((_ROOT / "packages" / "exact_resume" / "examples").glob("*.py"))
TORCH = _ROOT / ".venv-torch" / "bin" / "python"
_IS_TORCH = Path(sys.prefix) == TORCH.parents[1]
_NUM_WORKERS = {
    "accelerate_digits": (1, 2),
    "hugging_face_digits": (1, 2),
    "lightning_digits": (1, 2),
    "torch_ddp": (2,),
}
"""Of the examples that use PyTorch."""
_IMPORTS = (
    *("torch", "sklearn.datasets", "lightning", "transformers.trainer", "transformers.models.bert.modeling_bert"),
    *("exact_resume.trainers.hugging_face", "exact_resume.trainers.lightning"),
)
_CHANGES = {
    "hugging_face_digits": {
        "num_train_epochs=4": "num_train_epochs=6, gradient_accumulation_steps=2",
        "save_every_steps=30": "save_every_steps=7",
    },
    "lightning_digits": {
        "max_epochs=12": "max_epochs=8, accumulate_grad_batches=2",
        "save_every_steps=25": "save_every_steps=7",
    },
}
"""To examples, so that there are batches within a step."""
_NUM_FAULTS, _FAULTS_PER_RUN = 25, 5
"""Of an example, and of one of its runs."""
_TAKEN_OVER = "frozen, taken over"
_KINDS = (
    *("SIGKILL", "SIGKILL", "killed in its first second", "killed in a save", "SIGTERM", "notice, then killed"),
    *("frozen", _TAKEN_OVER, "torn", "bit flipped", "full disk"),
)
_POINTS = (
    ("exact_resume.checkpoints.checkpoints", "save"),
    ("exact_resume.checkpoints.checkpoints", "prune"),
    ("exact_resume.checkpoints.manifest", "write"),
    ("exact_resume.files.publication", "Fence.write"),
)
"""Module and name of parts of a save."""
_IN_EVALUATION, _IN_ACCUMULATION = "killed in the evaluation", "killed between the batches of a step"
_POINTS_OF = {
    "hugging_face_digits": {
        _IN_EVALUATION: [
            (_TRAINER := "transformers.trainer", "Trainer.evaluation_loop"),
            (_TRAINER, "Trainer.prediction_step"),
        ],
        _IN_ACCUMULATION: [(_TRAINER, "Trainer.training_step")],
    },
    "lightning_digits": {
        _IN_EVALUATION: [
            (_LOOP := "lightning.pytorch.loops.evaluation_loop", "_EvaluationLoop.run"),
            (_LOOP, "_EvaluationLoop._evaluation_step"),
        ],
        _IN_ACCUMULATION: [("lightning.pytorch.loops.training_epoch_loop", "_TrainingEpochLoop.advance")],
    },
}
_MOST_CALLS = 5
"""Of such a point, that may pass before the kill."""
_GRACE_SECONDS = 20.0
"""For the other worker to notice a lost one; one that has not met it yet would wait for longer."""
_Processes = Sequence["subprocess.Popen[bytes] | Forked"]


class _Ended(NamedTuple):
    weights: set[str]
    """Last line of each worker."""
    examples: Mapping[str, Mapping[int, list[str]]]
    """Of the batches of each step, by the name of the worker's file."""


def main() -> int:
    """Interrupt runs; return 1 if one of them ended otherwise."""
    can_fill = small_disks.enter_namespace("examples")
    stems = [example.stem for example in EXAMPLES if (example.stem in _NUM_WORKERS) == _IS_TORCH]
    given = options(
        "examples", __doc__, num_faults=_NUM_FAULTS * len(stems), smoke_values={"num_faults": 3}, examples=stems
    )
    examples = [
        (example, num_workers)
        for example in EXAMPLES
        for num_workers in _NUM_WORKERS.get(example.stem, (1,))
        if example.stem in ([given.example] if given.example else stems)
    ]
    # Sums in another order would give other bits.
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3", NO_GCE_CHECK="1")
    soak = Soak("examples of PyTorch" if _IS_TORCH else "examples", given)
    for module in _IMPORTS if _IS_TORCH else ():
        importlib.import_module(module)

    @functools.cache
    def undisturbed(example: Path, num_workers: int) -> _Ended:
        folder = soak.folder / f"undisturbed-{example.stem}-{num_workers}"
        return _Run(example, num_workers, folder, can_fill=False).finish()

    def interrupt(number: int) -> list[Fault]:
        (example, num_workers), draw = examples[number % len(examples)], random.Random(f"{given.seed}-{number}")
        expected = undisturbed(example, num_workers)
        # The faults of a run fall into its whole length.
        num_batches = max(sum(map(len, steps.values())) for steps in expected.examples.values())
        run = _Run(example, num_workers, folder := soak.folder / f"run-{number}", can_fill=can_fill)
        try:
            faults = [
                run.disturb(draw, num_batches // (_FAULTS_PER_RUN - 1))
                for _ in range(min(_FAULTS_PER_RUN, given.num_faults))
            ]
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
        self._folder, self._can_fill, self._num_noted_before = folder, can_fill, 0
        self._stem, self._num_workers, self._num_starts = example.stem, num_workers, 0
        self.directory = folder / "run"
        self.directory.mkdir(parents=True)
        text = example.read_text()
        for before, after in _CHANGES.get(example.stem, {}).items():
            assert before in text
            text = text.replace(before, after)
        self._program = folder / example.name
        self._program.write_text(text)
        if can_fill:
            small_disks.mount(self.directory)

    def remove(self) -> None:
        if self._can_fill:
            small_disks.unmount(self.directory)
        shutil.rmtree(self._folder, ignore_errors=True)

    def finish(self) -> _Ended:
        """Start the program, and wait for its end."""
        codes = _wait(self._start({}))
        texts = [self._output(rank).read_text() for rank in range(self._num_workers)]
        assert not any(codes), "".join(text[-3000:] for text in texts)
        examples: dict[str, dict[int, list[str]]] = {}
        for path in self._folder.glob("seen*"):
            steps = examples[path.name] = {}
            for line in path.read_text().splitlines():
                step, _, found = line.partition(" ")
                # A repeated step with other examples has more than an undisturbed one.
                batches = steps.setdefault(int(step), [])
                batches += [found] * (found not in batches)
            assert sorted(steps) == list(range(len(steps)))
        assert len(examples) == self._num_workers
        return _Ended({_last_line(text) for text in texts}, examples)

    def disturb(self, draw: random.Random, most_batches: int) -> tuple[str, str]:
        """Start the program, disturb it, and wait until it has ended; return the kind of fault and the outcome."""
        points_of = {"killed in a save": _POINTS, **_POINTS_OF.get(self._stem, {})}
        kinds = [*_KINDS, *_POINTS_OF.get(self._stem, ()), *_POINTS_OF.get(self._stem, ())]
        kind = draw.choice([kind for kind in kinds if self._can_fill or kind != "full disk"])
        num_batches, seconds = draw.randrange(most_batches), draw.random()
        hit = draw.choice([[rank] for rank in range(self._num_workers)] + [list(range(self._num_workers))])
        filler = self.directory / "filler"
        variables = self._kill_point(draw, kind, points) if (points := points_of.get(kind, ())) else {}
        if kind == "full disk":
            small_disks.fill(filler)
        with _MetadataServer() as server:
            if kind == "notice, then killed":
                variables = {"GCE_METADATA_HOST": f"127.0.0.1:{server.server_port}"}
            processes = self._start(variables)
            if kind == "killed in its first second":
                time.sleep(seconds)
            elif not points and kind != "full disk":
                self._wait_for_batches(processes, num_batches)
            if kind == "notice, then killed":
                server.has_notice.set()
                time.sleep(1 + seconds)
        if kind == _TAKEN_OVER:
            _send(processes, signal.SIGSTOP)
            others = self._start({})
            self._wait_for_batches(others, num_batches)
            _send(processes, signal.SIGCONT)
        elif not points and kind != "full disk":
            _signal(kind, [processes[rank] for rank in hit])
        codes = _wait(processes)
        if kind == _TAKEN_OVER:
            _send(others, signal.SIGKILL)
            codes += _wait(others)
        filler.unlink(missing_ok=True)
        (self._folder / "point.json").unlink(missing_ok=True)
        outcome = f"exit code {' and '.join(map(str, sorted(codes)))}"
        if kind in ("torn", "bit flipped"):
            outcome = _damage(self.directory, draw, is_torn=kind == "torn")
        return kind, outcome

    def _wait_for_batches(self, processes: _Processes, num_batches: int) -> None:
        """Wait until the first worker has trained more batches since its start, or one has ended."""
        while all(each.poll() is None for each in processes) and (
            self._num_noted() <= self._num_noted_before + num_batches
        ):
            time.sleep(0.01)

    def _num_noted(self) -> int:
        first = sorted(self._folder.glob("seen*"))[:1]
        return sum(path.read_bytes().count(b"\n") for path in first)

    def _output(self, rank: int) -> Path:
        return self._folder / f"output-{self._num_starts}-{rank}"

    def _start(self, variables: Mapping[str, str]) -> _Processes:
        self._num_noted_before = self._num_noted()
        self._num_starts += 1
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        started: list[subprocess.Popen[bytes] | Forked] = []
        for rank in range(self._num_workers):
            own = {"EXAMPLES_SEEN": str(self._folder / "seen"), "CLOUD_ML_JOB_ID": "soak", **variables}
            if self._num_workers > 1:
                own |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(self._num_workers)}
                own |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            words = [str(self._program), str(self.directory)]
            words += [str(self._num_workers)] if self._stem == "lightning_digits" else []
            with self._output(rank).open("wb") as file:
                if _IS_TORCH:
                    before = Path(variables["PYTHONPATH"], "sitecustomize.py") if "PYTHONPATH" in variables else None
                    started.append(Forked(words, own, file.fileno(), before=before))
                else:
                    command = [sys.executable, *words]
                    started.append(subprocess.Popen(command, env=os.environ | own, stdout=file, stderr=file))
        return started

    def _kill_point(self, draw: random.Random, kind: str, points: Sequence[tuple[str, str]]) -> dict[str, str]:
        code = self._folder / "code"
        code.mkdir(exist_ok=True)
        shutil.copy(Path(*kill_point.__path__) / "sitecustomize.py", code)
        module, name = draw.choice(points)
        point: dict[str, Any] = {"module": module, "name": name, "is_run": False}
        point["when"] = draw.choice(("before", "after"))
        if kind == _IN_ACCUMULATION:
            point |= {"when": "after", "num_calls_before": 2 * draw.randrange(_MOST_CALLS)}
        elif points is not _POINTS:
            point["num_calls_before"] = draw.randrange(_MOST_CALLS)
        (self._folder / "point.json").write_text(json.dumps(point))
        return {"PYTHONPATH": str(code)}


def _signal(kind: str, processes: _Processes) -> None:
    if kind == "frozen":
        _send(processes, signal.SIGSTOP)
        time.sleep(0.5)
    _send(processes, signal.SIGTERM if kind == "SIGTERM" else signal.SIGKILL)


def _send(processes: _Processes, number: int) -> None:
    for process in processes:
        process.send_signal(number)


def _wait(processes: _Processes) -> list[int]:
    """Wait until all have ended; kill those that wait for one that has failed."""
    began, failed_at = time.monotonic(), math.inf
    while any(process.poll() is None for process in processes):
        assert time.monotonic() < began + 600, "the processes have not ended"
        if any(process.poll() for process in processes):
            failed_at = min(failed_at, time.monotonic())
        if time.monotonic() > failed_at + _GRACE_SECONDS:
            _send(processes, signal.SIGKILL)
        time.sleep(0.1)
    codes = [process.returncode or 0 for process in processes]
    return [134 if code == -signal.SIGABRT else code for code in codes]


def _last_line(text: str) -> str:
    """Return the digest of the weights; messages of the libraries may follow it."""
    return [line for line in text.splitlines() if len(line) == 64 and set(line) <= {*"0123456789abcdef"}][-1]


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
