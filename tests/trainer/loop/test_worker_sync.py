"""What workers decide together between graph calls, and how long a call is."""

from collections.abc import Sequence

from exact_resume.workers.signals import StopRequest
from exact_resume.workers.team import Pace
from exact_resume.workers.watchdog import Watchdog
from trainer.loop.worker_sync import EvaluationRounds, WorkerSync


class Peer:
    """Adds the values of another worker to each exchange."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def add_up(self, values: Sequence[float]) -> list[float]:
        return [own + other for own, other in zip(values, self.values or [0.0] * len(values), strict=True)]


def make_sync(peer: Peer, *, is_chief: bool, notices: list[str]) -> WorkerSync:
    return WorkerSync(
        peer.add_up,
        is_chief=is_chief,
        stop=StopRequest(),
        log_preemptions=lambda: bool(notices and notices.pop()),
        watchdog=Watchdog(0),
    )


def test_a_call_is_as_long_as_the_time_allows_and_grows_gradually() -> None:
    pace = Pace()
    assert pace.num_steps == 1
    pace.record(1, 5.0)
    assert pace.num_steps == 1
    pace.record(1, 0.001)
    assert pace.num_steps == 4
    pace.record(4, 0.004)
    assert pace.num_steps == 16
    pace.record(16, 16.0)
    assert pace.num_steps == 2


def test_a_stop_request_or_a_save_of_any_worker_counts_and_the_chief_decides_the_number_of_steps() -> None:
    peer = Peer()
    worker = make_sync(peer, is_chief=False, notices=[])
    peer.values = [0.0, 0.0, 7.0, 0.0]
    decision = worker.decide(Pace(), save_is_due=True, ends_early=True)
    # Only the chief's clock and the chief's validation history count.
    assert (decision.stop, decision.save, decision.num_steps, decision.ends_early) == (False, False, 7, False)
    peer.values = [1.0, 1.0, 7.0, 1.0]
    decision = worker.decide(Pace())
    assert (decision.stop, decision.save, decision.ends_early) == (True, True, True)
    assert worker.reason_to_stop == "another worker was asked to stop"
    peer.values = [40.0]
    assert worker.value_of_chief(3) == 40
    assert EvaluationRounds(make_sync(Peer(), is_chief=True, notices=[]))(5) == 1


def test_a_notice_asks_for_a_save_until_it_is_made() -> None:
    sync = make_sync(Peer(), is_chief=True, notices=["preempted"])
    assert sync.decide(Pace()).save
    assert sync.decide(Pace()).save
    sync.note_save()
    assert not sync.decide(Pace()).save
