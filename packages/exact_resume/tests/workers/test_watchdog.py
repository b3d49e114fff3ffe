"""A process that makes no progress is aborted."""

import subprocess
import sys

WATCH = """
import sys, threading, time
from exact_resume.workers import watchdog

class Clock:
    # It moves only when this program moves it, however long that takes.
    now, looks = 100.0, 0
    def monotonic(self):
        self.looks += threading.current_thread().name == "watchdog"
        return self.now

def spend(seconds):
    # Returns when the watchdog has seen it.
    clock.now += seconds
    seen = clock.looks
    while limit and clock.looks < seen + 2:
        time.sleep(0.001)

def stuck():
    spend(5 * limit)

clock = watchdog.time = Clock()
limit, is_stuck = float(sys.argv[1]), sys.argv[2] == "stuck"
dog = watchdog.Watchdog(limit, report=lambda message: print(message, flush=True))
spend(3000)  # the start may take longer
for _ in range(3):
    dog.beat()
    spend(0.9 * limit)
print("worked", flush=True)
if is_stuck:
    stuck()
dog.close()
for thread in threading.enumerate():
    if thread.name == "watchdog":
        thread.join()
print("done")
"""


def watch(limit: float, end: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", WATCH, str(limit), end], capture_output=True, text=True, timeout=300)


def test_a_process_without_progress_is_aborted_and_prints_its_stacks() -> None:
    ended = watch(0.2, "stuck")
    assert ended.returncode == -6
    assert "worked" in ended.stdout
    assert "no progress for 1 s, and the watchdog waits 0.2 s; aborting" in ended.stdout
    assert "in stuck" in ended.stderr
    assert "done" not in ended.stdout


def test_progress_closing_or_a_timeout_of_zero_prevents_the_abort() -> None:
    assert watch(0.2, "closed").stdout.split() == ["worked", "done"]
    assert watch(0, "stuck").stdout.split() == ["worked", "done"]
