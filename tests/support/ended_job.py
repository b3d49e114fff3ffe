"""Measure how a training of `trainer.task` ends. `python -m tests.support.ended_job` writes all into ends.md.

The page has the other ways to train from packages/exact_resume/tests/ends.py.
"""

import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from unittest import mock

from exact_resume.checkpoints import lease
from tests.support.job import Job
from vertex_testing import ends
from vertex_testing.ends import Cell

PAGE = Path(__file__).resolve().parents[2] / "packages" / "exact_resume" / "docs" / "ends.md"
_DOES_NOT_APPLY = {1: {"lost peer": "one process"}, 2: {}}
"""Number of workers -> end -> reason."""
_NUM_STEPS = 28
"""Of an epoch of the 300 digits."""


def way(num_workers: int) -> str:
    """Return the name of a column."""
    return "trainer" if num_workers == 1 else f"trainer, {num_workers} workers"


def measure(num_workers: int, end: str, folder: Path, dataset: Path) -> Cell:
    """Train once, to this end.

    Args:
        num_workers: 1 or 2.
        end: One of `vertex_testing.ends.ENDS`.
        folder: Checkpoint folder, which does not exist.
        dataset: The 300 digits.
    """
    if reason := _DOES_NOT_APPLY[num_workers].get(end):
        return (f"does not apply: {reason}",)
    arguments = [f"--dataset={dataset}", f"--checkpoint-directory={folder}", "--global-batch-size=8"]
    arguments += ["--checkpoint-every-seconds=0", f"--checkpoint-every-steps={0 if 'notice' in end else 4}"]
    arguments += {
        "stopped early": ["--epochs=3", "--patience=1", "--minimum-accuracy-gain=1"],
        "lost best": ["--epochs=2"],
        "frozen": ["--epochs=1", "--watchdog-seconds=20"],
        "another job's lease": ["--epochs=1", "--peer-timeout-seconds=20"],
    }.get(end, ["--epochs=1"])
    with contextlib.ExitStack() as other:
        if end == "another job's lease":
            _ended("SIGTERM", folder, arguments, num_workers)
            shutil.rmtree(folder / "events")
            folder.with_name(f"{folder.name}.step").write_text(str(_NUM_STEPS))
            other.enter_context(mock.patch.object(lease, "HEARTBEAT_SECONDS", 0.1))
            held = lease.Lease(str(folder), "another")
            held.take(lease.identity_of_holder(str(folder)) or {})
            held.keep(lambda error: None)
            other.callback(held.release)
        codes = _ended(end, folder, arguments, num_workers)
    cell = ends.measured(end, folder, codes, num_steps=_NUM_STEPS)
    if end == "SIGTERM, then error":
        assert set(_ended("", folder, arguments, num_workers)) == {0}
    return cell


def _ended(end: str, folder: Path, arguments: list[str], num_workers: int) -> list[int | None]:
    """Return the exit codes, first of the worker to which the end comes."""
    # Only the chief writes checkpoints.
    affected = 0 if "disk" in end or end in ends.ONLY_ALL else num_workers - 1
    job = Job(folder, arguments, num_workers)
    job.module, job.forks = "tests.support.ended_task", True
    job.environment_of = lambda place: {
        "ENDS": end if place == affected or end in ends.ONLY_ALL else "",
        "NO_GCE_CHECK": "1",
    }
    job.start()
    try:
        others = [each for place, each in enumerate(job.workers) if place != affected]
        while end == "frozen" and others and any(each.poll() is None for each in others):
            time.sleep(0.05)
        if end == "frozen" and others:
            job.workers[affected].kill()
        codes = job.wait_for_all()
    finally:
        job.end()
    print(job.logs())
    codes = [None if code == -9 else code for code in codes]
    return [codes[affected], *[code for place, code in enumerate(codes) if place != affected]]


def main() -> None:
    """Measure all and write the page."""
    from trainer.prepare import prepare

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(
            source="digits",
            output_directory=str(folder / "dataset"),
            report_path=str(folder / "report.html"),
            image_size=16,
            max_examples=300,
        )
        found = {
            way(count): {
                end: measure(count, end, folder / f"{count}-{end}".replace(" ", "-"), folder / "dataset")
                for end in ends.ENDS
            }
            for count in (1, 2)
        }
    ends.write(PAGE, found)


if __name__ == "__main__":
    main()
