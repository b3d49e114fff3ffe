"""Kills of a release at random moments: of the whole run, or of any one of its processes."""

import random
import time
from collections import Counter

from tests.support.killed_release import Kill, KilledRelease

_CHANCE_OF_A_RUN = 0.5
_CHANCE_OF_A_NEW_RUN = 0.25


class RandomKills:
    """Kills one release after the other, each until it is completed.

    Args:
        release: The release.
        seed: Of the moments and victims.
        max_seconds: The latest moment of a kill, after the start of an attempt.
    """

    def __init__(self, release: KilledRelease, *, seed: int | str, max_seconds: float) -> None:
        self._release, self._draw, self._max_seconds = release, random.Random(seed), max_seconds
        self.num_kills = self.num_completed = 0
        self.victims: Counter[str] = Counter()
        """Killed targets, and how many times."""
        self.seconds: list[float] = []
        """Duration of each attempt."""

    def attempt(self) -> str:
        """Resume or submit the run and kill it; begin with the next release if it was completed before.

        Returns:
            Events, for the log.
        """
        kill = Kill(
            seconds=self._draw.uniform(0, self._max_seconds),
            is_run=self._draw.random() < _CHANCE_OF_A_RUN,
            which=self._draw.random(),
        )
        start = self._release.submit if self._draw.random() < _CHANCE_OF_A_NEW_RUN else self._release.resume
        begin = time.monotonic()
        code = start(kill)
        self.seconds.append(time.monotonic() - begin)
        victim = self._release.victim
        assert code in (0, 1, -9), (code, self._release.output)
        assert code == 0 or victim, self._release.output
        if victim:
            self.num_kills += 1
            self.victims[victim] += 1
        assert "\nTraceback" not in self._release.output, self._release.output
        at = ", ".join(sorted(self._release.steps("RUNNING") | self._release.steps("FAILED"))) or "no step"
        what = f"{start.__name__}, {victim or 'nothing'} killed after {kill.seconds:.1f} s at {at}"
        if code == 0:
            self._complete()
            return f"{what}: completed"
        return f"{what}: exit code {code}, champion {self._release.champion}, traffic {self._release.served}"

    def finish(self) -> None:
        """Complete the last release."""
        assert self._release.resume() == 0, self._release.output
        self._complete()

    def _complete(self) -> None:
        self.num_completed += 1
        self._release.check_end()
        self._release.restore()
