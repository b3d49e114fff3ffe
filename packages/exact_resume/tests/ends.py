"""Measure how the trainings of this package end: `python ends.py FOLDER [WAY [END...]]` prints them as JSON.

Each process is a fork of this one, which has imported what takes longer to import than to train. Without WAY, all are
measured, and docs/ends.md is written again.
"""

import functools
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import exact_resume
from exact_resume.__main__ import main as wrap
from exact_resume.checkpoints import lease, manifest
from vertex_testing import ends
from vertex_testing.ends import Cell, Disturbance

DOES_NOT_APPLY = {
    "run": {"lost peer": "one process"},
    "run, 2 workers": {},
    "blocks": {"lost peer": "one process"},
    "keras_fit": {"lost peer": "one process", "lost best": "no scores"},
    "wrapper": {"frozen": "a step may take any time", "lost best": "no scores"},
}
"""Way -> end -> reason."""
PAGE = Path(__file__).parents[1] / "docs" / "ends.md"
_STEPS = 100


def run(end: str, folder: str, disturb: Disturbance, *, is_alone: bool) -> None:
    """Train with the library's loop."""
    weights = np.zeros(20_000)
    with exact_resume.run(
        folder,
        steps=_STEPS,
        state={"weights": weights},
        # Of several workers, all look at notices and signals when a save is due; only the end should be the reason.
        save_every_steps=0 if end.startswith("notice") or not is_alone else 4,
        save_every_seconds=0,
        watchdog_seconds=2 if end == "frozen" else 900,
        peer_timeout_seconds=2 if end == "frozen" else 60,
    ) as loop:
        for step in loop:
            weights += 1
            disturb(step + 1, functools.partial(loop.finish, "enough"))
            loop.log(loss=disturb.loss)
            time.sleep(0.005)
            if end == "lost best":
                loop.score(loss=float(step))
                _lose_best(folder, disturb)
        loop.result()


def blocks(end: str, folder: str, disturb: Disturbance, *, is_alone: bool) -> None:
    """Train blocks of steps, with validations in parts."""
    weights = np.zeros(20_000)
    with exact_resume.run(
        folder,
        steps=_STEPS,
        state={"weights": weights},
        validate_every_steps=2 if end == "lost best" else 25,
        save_every_steps=0 if end.startswith("notice") else 4,
        save_every_seconds=0,
        watchdog_seconds=2 if end == "frozen" else 900,
    ) as loop:
        for block in loop.blocks():
            weights += block.num_steps
            step = block.first_step + block.num_steps
            disturb(step, functools.partial(loop.finish, "enough"))
            loop.log(loss=disturb.loss)
            time.sleep(0.005 * block.num_steps)
            parts = [*loop.validation(2)]
            loop.score(loss=float(step + len(parts)))
            _lose_best(folder, disturb) if end == "lost best" else None
        loop.result()


def _lose_best(folder: str, disturb: Disturbance) -> None:
    """Remove the first checkpoint that was scored, which is the best."""
    if disturb.has_come:
        for step in (1, 2):
            shutil.rmtree(Path(folder, manifest.name(step)), ignore_errors=True)


def keras_fit(end: str, folder: str, disturb: Disturbance, *, is_alone: bool) -> None:
    """Train with Keras."""
    import keras

    class Disturbing(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            disturb(loop.step + 1, lambda: setattr(self.model, "stop_training", True))
            logs["loss"] = disturb.loss
            time.sleep(0.005)

    data = np.zeros((20, 1), np.float32)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(20_000, use_bias=False), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callback = Disturbing()
    with exact_resume.keras_fit.run(
        folder,
        model=model,
        data=(data, data),
        sampler=exact_resume.Sampler(num_examples=20, global_batch_size=2),
        epochs=_STEPS // 10,
        callbacks=[callback],
        stateless=[callback],
        save_every_steps=0 if end.startswith("notice") else 4,
        save_every_seconds=0,
        watchdog_seconds=10 if end == "frozen" else 900,
    ) as (loop, arguments):
        model.fit(**arguments, verbose=0)


def wrapper(end: str, folder: str, disturb: Disturbance, *, is_alone: bool) -> None:
    """Wrap a command, which this file is, too."""
    words = [f"--checkpoint-directory={folder}", f"--watch={folder}.own", "--whole=rename:step-*"]
    words += [r"--progress=step (?P<step>\d+) loss (?P<loss>\S+)", "--exit-code=1=134:lost-peer", "--"]
    os.environ |= {"ENDS": end, "ENDS_IN": str(os.getpid())}
    sys.exit(wrap([*words, sys.executable, __file__, "command", folder]))


def command(folder: str) -> None:
    """Train as a script that saves by itself: after 4 steps, at its end, and after a signal."""
    end, own = os.environ["ENDS"], Path(f"{folder}.own")
    # The error after SIGTERM is that of the handler.
    disturb = Disturbance(end.removesuffix(", then error"), folder, process=int(os.environ["ENDS_IN"]))

    def save() -> None:
        (own / ".new").write_bytes(bytes(100_000))
        os.rename(own / ".new", own / f"step-{step:03}")

    def stop(*_: Any) -> None:
        if end.endswith("error"):
            raise ZeroDivisionError("of its own")
        save()
        sys.exit()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    own.mkdir(exist_ok=True)
    restored = max((int(path.name[5:]) for path in own.glob("step-*")), default=0)
    for step in range(restored + 1, _STEPS + 1):
        if end == "lost peer" and step == ends.END_OF_STEP:
            text = json.dumps({"message": {"message": "connection closed by peer"}})
            Path(os.environ["TORCHELASTIC_ERROR_FILE"]).write_text(text)
            Path(f"{folder}.step").write_text(str(step))
            sys.exit(1)
        disturb(step)
        print(f"step {step} loss {disturb.loss}", flush=True)
        is_last = step == _STEPS or (disturb.has_come and end == "stopped early")
        if is_last or step == 4:
            save()
        if is_last:
            return
        while disturb.has_come and end.startswith(("SIG", "notice")):
            # Until the signal has come by way of the wrapper.
            time.sleep(0.01)


def _measure(way: str, end: str, folder: Path) -> Cell:
    """Train once, to this end."""
    if reason := DOES_NOT_APPLY[way].get(end):
        return (f"does not apply: {reason}",)
    program, _, count = way.partition(", ")
    num_workers = 2 if count else 1
    if end == "another job's lease":
        _ended("SIGTERM", program, folder, num_workers)
        shutil.rmtree(folder / "events")
        other = lease.Lease(str(folder), "another")
        other.take(lease.identity_of_holder(str(folder)) or {})
        other.keep(lambda error: None)
        Path(f"{folder}.step").write_text(str(_STEPS))
    codes = _ended(end, program, folder, num_workers)
    # The wrapper does not know the steps of the command's checkpoints, which have them in their names.
    entries = [json.loads(path.read_text()).get("entry", "") for path in folder.glob("step-*/manifest.json")]
    saves = [int(entry[5:]) for entry in filter(None, entries)]
    cell = ends.measured(end, folder, codes, num_steps=_STEPS, saves=saves)
    if cell[-1] == "restarts":
        assert set(_ended("finished", program, folder, num_workers)) == {0}
    return cell


def _ended(end: str, program: str, folder: Path, num_workers: int) -> list[int | None]:
    """Return the exit codes, first of the worker to which the end comes."""
    # Only the chief writes checkpoints.
    affected = 0 if "disk" in end or end in ends.ONLY_ALL else num_workers - 1
    pids = []
    for rank in range(num_workers):
        if not (pid := os.fork()):
            is_affected = rank == affected or end in ends.ONLY_ALL
            if num_workers > 1:
                os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
            disturb = Disturbance(end if is_affected else "", str(folder), is_alone=num_workers == 1)
            disturb.watched()
            globals()[program](end, str(folder), disturb, is_alone=num_workers == 1)
            sys.exit()
        pids.append(pid)
    codes: list[int | None] = []
    for pid in sorted(pids, key=lambda pid: pid == pids[affected]):
        if end == "frozen" and num_workers > 1 and pid == pids[affected]:
            os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        codes.append(None if code == -signal.SIGKILL else code)
    return codes[::-1]


def main(folder: str, *words: str) -> None:
    """Measure and print."""
    # The heartbeat of another job is watched for seconds.
    Path(folder).mkdir(parents=True, exist_ok=True)
    lease.HEARTBEAT_SECONDS, lease.WATCH_SECONDS = 0.1, 2.0
    os.environ["NO_GCE_CHECK"] = "1"
    for way in words[:1] or DOES_NOT_APPLY:
        if way == "keras_fit":
            import keras  # noqa: F401
        chosen = words[1:] or ends.ENDS
        found = {end: _measure(way, end, Path(folder, f"{way}-{end}".replace(" ", "-"))) for end in chosen}
        print(json.dumps(found)) if words else ends.write(PAGE, {way: found})


if __name__ == "__main__":
    command(*sys.argv[2:]) if sys.argv[1] == "command" else main(*sys.argv[1:])
