"""Two runs at once: whatever order their calls of the registry have, the better model is the champion in the end."""

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.compare.promotion import Outcome
from components.registry import registry as registry_module
from components.registry.labels import ALIASES
from components.registry.registry import Registry
from components.release.registration import Recorded
from exact_resume.checkpoints import lease
from exact_resume.checkpoints.lease import Lease
from tests.support.any_code_run import NAME, AnyCodeRun
from vertex_testing.server import Server

Make = Callable[[str, float], AnyCodeRun]
BETTER, WORSE = 0.3, 0.4
"""Losses of the two models; the champion's is 0.5."""
LOSS = {"metric": "loss", "direction": "minimize"}


@pytest.fixture
def make(tmp_path: Path, server: Server, registry: Registry) -> Make:
    def write(name: str, loss: float) -> AnyCodeRun:
        return AnyCodeRun(folder=tmp_path, server=server, registry=registry, name=name).write({"loss": loss})

    return write


def champion(registry: Registry) -> str:
    """Return the version with both aliases."""
    (found,) = [each for each in registry.versions(registry.find(NAME)) if each.aliases]
    assert sorted(found.aliases) == sorted(ALIASES)
    return found.name


class Runs:
    """Steps `record` of two runs, each in a thread that stops before a call until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._here, self._changed = threading.local(), threading.Condition()
        self.methods: dict[str, list[str]] = {}
        self.results: dict[str, Recorded] = {}
        self._states: dict[str, str] = {}
        self._released: set[str] = set()
        self._threads: list[threading.Thread] = []
        call, watch = registry_module.call, Lease.watch

        def counted(method: Any, request: Any, **options: Any) -> Any:
            name = getattr(self._here, "name", "")
            if name:
                if len(self.methods[name]) == self._here.stop:
                    self._wait(name)
                self.methods[name].append(method.__name__)
            return call(method, request, **options)

        def waiting(own: Lease) -> None:
            self._set(self._here.name, "waits for its turn")
            watch(own)

        monkeypatch.setattr(registry_module, "call", counted)
        monkeypatch.setattr(Lease, "watch", waiting)
        # Polled more often, for as long.
        monkeypatch.setattr(lease, "_POLLS", 1200)

    def start(self, name: str, step: Callable[[], Recorded], stop: int) -> None:
        """Start a step; return when it has ended, is before the call with a number, or waits for the other one."""

        def run() -> None:
            self._here.name, self._here.stop = name, stop
            try:
                self.results[name] = step()
            finally:
                self._set(name, "ended")

        self.methods[name] = []
        self._states[name] = ""
        self._threads.append(threading.Thread(target=run))
        self._threads[-1].start()
        self._until(name, "ended", "stopped", "waits for its turn")

    def release(self, name: str) -> None:
        """Let a step that is stopped continue until it has ended, or waits for the other one."""
        self._released.add(name)
        if self._states[name] == "stopped":
            self._set(name, "")
            self._until(name, "ended", "waits for its turn")

    def join(self) -> None:
        for each in self._threads:
            each.join()

    def _wait(self, name: str) -> None:
        with self._changed:
            if name in self._released:
                return
            self._states[name] = "stopped"
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._states[name] != "stopped")

    def _until(self, name: str, *states: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._states[name] in states)

    def _set(self, name: str, state: str) -> None:
        with self._changed:
            self._states[name] = state
            self._changed.notify_all()


@pytest.fixture
def two(make: Make, registry: Registry) -> Callable[[float, float], list[tuple[AnyCodeRun, Outcome, str]]]:
    """Two runs with a loss each, which were compared with the same champion, and are uploaded in their order."""

    def upload(*losses: float) -> list[tuple[AnyCodeRun, Outcome, str]]:
        first = make("0", 0.5)
        former = first.register(first.compare(**LOSS), **LOSS)
        runs = [make(str(number), loss) for number, loss in enumerate(losses, 1)]
        compared = [run.compare(**LOSS, deploy_endpoint="live") for run in runs]
        assert [(each.is_promoted, each.champion) for each in compared] == [(True, former)] * 2
        versions = [run.upload() for run in runs]
        assert champion(registry) == former
        return list(zip(runs, compared, versions, strict=True))

    return upload


@pytest.fixture
def delete(server: Server, registry: Registry) -> Callable[[], None]:
    def every_model() -> None:
        server.call("DELETE", f"models/{registry.find(NAME).rpartition('/')[2]}").raise_for_status()

    return every_model


NUM_CALLS, ALIAS = 12, 7
"""More calls than `record` makes, and the one that sets the alias; the champion is read right before and after it."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "losses", [(BETTER, WORSE), (WORSE, BETTER), (BETTER, BETTER)], ids=["better first", "worse first", "equal"]
)
@pytest.mark.parametrize(
    ("stops", "other_stop", "roots"),
    [
        ((0, ALIAS - 1, ALIAS, ALIAS + 1), NUM_CALLS, ("", "")),
        ((0, ALIAS - 1, ALIAS, ALIAS + 1), ALIAS - 1, ("", "")),
        ((0, ALIAS - 1, ALIAS, ALIAS + 1), ALIAS, ("", "")),
        # These runs do not wait for each other. Without the window between the reading and the setting of the alias.
        ((0, ALIAS - 1, ALIAS + 1), NUM_CALLS, ("own", "other")),
    ],
    ids=["one after the other", "before the reading", "before the alias", "other pipeline roots"],
)
def test_the_better_of_two_models_is_the_champion_in_every_order_of_their_calls(
    two: Any,
    registry: Registry,
    delete: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    losses: tuple[float, float],
    stops: tuple[int, ...],
    other_stop: int,
    roots: tuple[str, str],
) -> None:
    def record(run: AnyCodeRun, compared: Outcome, version: str, root: str) -> Recorded:
        return run.record(version, compared, **LOSS | ({"pipeline_root": str(tmp_path / root)} if root else {}))

    for stop in stops:
        given = two(*losses)
        with monkeypatch.context() as patch:
            runs = Runs(patch)
            steps = {
                each[2]: functools.partial(record, *each, root=root) for each, root in zip(given, roots, strict=True)
            }
            first, second = steps
            runs.start(first, steps[first], stop)
            runs.start(second, steps[second], other_stop)
            runs.release(first)
            runs.release(second)
            runs.join()
        best = champion(registry)
        assert len(runs.results) == 2
        assert losses[[first, second].index(best)] == min(losses)
        for version, result in runs.results.items():
            assert result.registered_version == version
            assert result.is_promoted is (result.deploy_endpoint == "live")
        # The worse one has been promoted only if it was the champion before the better one.
        assert runs.results[best].is_promoted
        worse = second if best == first else first
        was_champion = "merge_version_aliases" in runs.methods[worse]
        is_promoted = runs.results[worse].is_promoted
        assert is_promoted is was_champion or (roots[0] and not is_promoted)
        assert (registry.get(worse).labels["promotion"] == "refused") is not is_promoted
        delete()
