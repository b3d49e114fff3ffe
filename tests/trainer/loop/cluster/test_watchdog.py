"""A process that makes no progress is aborted."""

import subprocess
import sys

WATCH = """
import sys, time
from trainer.loop.cluster.watchdog import Watchdog
dog = Watchdog(float(sys.argv[1]), report=lambda message: print(message, flush=True))
time.sleep(float(sys.argv[1]) + 0.5)  # the start may take longer
for _ in range(int(sys.argv[2])):
    time.sleep(0.1)
    dog.beat()
print("worked", flush=True)
def stuck():
    time.sleep(float(sys.argv[3]))
stuck()
dog.close()
time.sleep(float(sys.argv[4]))
print("done")
"""


def watch(*arguments: float) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", WATCH, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_process_without_progress_is_aborted_and_prints_its_stacks() -> None:
    ended = watch(1.0, 3, 50, 0)
    assert ended.returncode == -6
    assert "worked" in ended.stdout
    assert "no progress for 1 s (--watchdog-seconds=1); aborting" in ended.stdout
    assert "in stuck" in ended.stderr
    assert "done" not in ended.stdout


def test_progress_closing_or_a_timeout_of_zero_prevents_the_abort() -> None:
    assert watch(1.0, 15, 0, 2).stdout.split() == ["worked", "done"]
    assert watch(0, 0, 1, 0).returncode == 0
