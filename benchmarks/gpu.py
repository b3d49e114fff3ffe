"""Measure the trainer on one GPU: `python -m benchmarks.gpu`, in about 15 minutes, writes build/gpu-DATE.md.

1. Images per second of the trainer, of Keras' `fit` and of the bare loop, which is the limit (benchmarks/baselines.py):
   resnet50 on synthetic images of 224x224 pixels, in bfloat16 without and with XLA, and in float32. Beside each rate is
   the utilisation of the GPU, the median of nvidia-smi's samples while it was not idle.
2. Exact restart: a run with `--exact` that is killed after a save and started again has the same weights, bit by bit,
   as an undisturbed one.

What does not fit into `--minutes` is named: with XLA, `fit` needs two to three minutes to start, the trainer one.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measuring import Clock, Took, load, machine, num_gpus, parse
from benchmarks.train import baseline_rate, start, trainer_rate
from exact_resume.events import log as event_log
from trainer.prepare import prepare

_SIDES = ("fit", "trainer", "bare")
_VARIANTS = (("bfloat16", False), ("bfloat16", True), ("float32", False), ("float32", True))
"""Precision, and whether XLA is used; the first are the most important."""
_SMOKE_VARIANTS = (("bfloat16", True),)
_NUM_CLASSES = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Case:
    """A training to measure."""

    model: str = "resnet50"
    image_size: int = 224
    batch_size: int = 64
    num_images: int = 2048
    steps_per_call: int = 20
    exact_steps: int = 60
    """Length of the runs that are compared bit by bit."""


_SMOKE = _Case(model="convnet", image_size=16, batch_size=16, num_images=200, steps_per_call=5, exact_steps=300)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Measured:
    """A side in a variant."""

    images_per_second: float
    utilisation: str
    took: Took


def _synthetic(folder: Path, case: _Case) -> Path:
    """Prepare images of noise."""
    random = np.random.default_rng(0)
    for number in range(case.num_images):
        path = folder / "source" / str(number % _NUM_CLASSES) / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (case.image_size, case.image_size, 3), np.uint8)).save(path)
    data = folder / "data"
    source, report = str(folder / "source"), str(folder / "data.html")
    prepare(source=source, output_directory=str(data), report_path=report, image_size=case.image_size)
    return data


def _query(fields: str) -> str:
    """Return nvidia-smi's line about the first GPU; nothing without it."""
    if shutil.which("nvidia-smi") is None:
        return ""
    words = ["nvidia-smi", "--id=0", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def _sampled() -> Iterator[list[float]]:
    """Sample the utilisation of the GPU in percent, in the background."""
    samples: list[float] = []
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(0.5):
            with contextlib.suppress(ValueError):
                samples.append(float(_query("utilization.gpu")))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()


def _measure(side: str, case: _Case, data: Path, precision: str, xla: bool, seconds: float) -> _Measured:
    clock = Clock()
    with _sampled() as samples:
        if side == "trainer":
            flags = [f"--precision={precision}", f"--xla={'on' if xla else 'off'}"]
            rate = trainer_rate(data, case.model, case.batch_size, seconds, 1, *flags)
        else:
            rate = baseline_rate(
                1,
                side=side,
                dataset=str(data),
                model=case.model,
                batch_size=case.batch_size,
                steps_per_call=case.steps_per_call,
                seconds=seconds,
                xla=xla,
                precision=precision,
            )
    busy = [sample for sample in samples if sample > 0]
    utilisation = f"{statistics.median(busy):.0f}%" if busy else "not known"
    return _Measured(images_per_second=rate * case.batch_size, utilisation=utilisation, took=clock.took())


def _rates(case: _Case, data: Path, options: argparse.Namespace, deadline: float) -> Iterator[str]:
    """Yield the rows of the table."""
    longest = 0.0
    for precision, xla in _SMOKE_VARIANTS if options.smoke else _VARIANTS:
        name = f"{precision}, XLA {'on' if xla else 'off'}"
        found = {}
        for side in _SIDES:
            if time.monotonic() + longest > deadline:
                break
            found[side] = _measure(side, case, data, precision, xla, options.seconds)
            longest = max(longest, found[side].took.seconds)
            print(f"{name}, {side}: {found[side].images_per_second:,.0f} images/s, {found[side].took}", flush=True)
        rate = {side: found[side].images_per_second for side in found}
        cells = [f"{rate[side]:,.0f}" if side in rate else "no time left" for side in _SIDES]
        cells += [f"{rate['trainer'] / rate['fit']:.2f}" if "trainer" in rate else ""]
        cells += [f"{rate['trainer'] / rate['bare']:.0%}" if "bare" in rate else ""]
        cells += [found[side].utilisation if side in found else "" for side in _SIDES]
        yield f"| {name} | {' | '.join(cells)} |"


def _restart(case: _Case, data: Path, folder: Path) -> str:
    """Compare a run that was killed with an undisturbed one."""
    digests = []
    for name in ("undisturbed", "killed"):
        run = folder / name
        words = ["-m", "trainer.task", f"--dataset={data}", f"--checkpoint-directory={run}", f"--model={case.model}"]
        words += ["--weights=none", "--exact", "--epochs=1000", f"--max-steps={case.exact_steps}"]
        words += [f"--global-batch-size={case.batch_size}", f"--checkpoint-every-steps={case.exact_steps // 6}"]
        words += ["--checkpoint-every-seconds=0"]
        log = folder / f"{name}.log"
        if name == "killed":
            process = start(words, {}, log)
            while process.poll() is None and max(_steps_of(run, "save"), default=0) < case.exact_steps // 3:
                time.sleep(0.02)
            process.kill()
            process.wait()
            if (run / "result.json").exists() or not _steps_of(run, "save"):
                raise RuntimeError(f"the run ended before it was killed: {log.read_text()[-1000:]}")
        if start(words, {}, log).wait():
            raise RuntimeError(f"an exact run failed: {log.read_text()[-1000:]}")
        digests.append(json.loads((run / "result.json").read_text())["weights_sha256"])
    steps = f"{case.exact_steps} steps of {case.model}, killed, resumed at step {_steps_of(run, 'restore')[-1]}"
    equal = digests[0] == digests[1]
    return f"Exact restart ({steps}): {'same weights' if equal else 'OTHER WEIGHTS'}, {' and '.join(digests)}"


def _steps_of(run: Path, event: str) -> list[int]:
    """Return the steps of the events of a kind in the event log."""
    found = event_log.read(str(run)) if run.exists() else []
    return [each["step"] for each in found if each["event"] == event]


def main() -> int:
    """Write the table; return 1 if the weights differ, 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="duration of each measurement, without warm-up")
    parser.add_argument("--minutes", type=float, default=15.0, help="no measurement begins that would end later")
    parser.add_argument("--output-dir", type=Path, default=Path(__file__).parents[1] / "build")
    options = parse(parser, seconds=0.1)
    if not options.smoke and not num_gpus():
        print("error: TensorFlow sees no GPU here; --smoke tries the benchmark on the CPU", file=sys.stderr)
        return 2
    clock, begin, load_before = Clock(), time.monotonic(), load()
    case = _SMOKE if options.smoke else _Case()
    today = datetime.datetime.now(datetime.UTC).date()
    with tempfile.TemporaryDirectory() as folder:
        data = _synthetic(Path(folder), case)
        exact = _restart(case, data, Path(folder))
        print(exact, flush=True)
        rows = list(_rates(case, data, options, begin + 60 * options.minutes))
    lines = [
        f"# One GPU, {today}{': a smoke test on the CPU, its figures mean nothing' if options.smoke else ''}\n",
        f"{_query('name,driver_version,memory.total') or 'no GPU'}; {machine()}; {clock.took()}\n",
        f"Load average {load_before} at the start and {load()} at the end.\n",
        f"Images per second of {case.model} at {case.image_size}x{case.image_size}, batch {case.batch_size}:\n",
        "| variant | fit | trainer | bare | trainer / fit | trainer / bare | GPU busy: fit | trainer | bare |",
        "|---|---|---|---|---|---|---|---|---|",
        *rows,
        f"\n{exact}",
    ]
    options.output_dir.mkdir(parents=True, exist_ok=True)
    table = options.output_dir / f"gpu-{'smoke-' if options.smoke else ''}{today}.md"
    table.write_text("\n".join(lines) + "\n")
    print(table.read_text() + f"\nwritten to {table}")
    return int("OTHER" in exact)


if __name__ == "__main__":
    sys.exit(main())
