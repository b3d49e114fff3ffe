"""schedules through the real SDK, with a faster clock where a test would wait for minutes."""

import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from google.api_core import exceptions

from vertex_testing.server import Server, wait_until

pytestmark = [
    pytest.mark.slow,
    # The SDK itself calls a logging method that is deprecated.
    pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated"),
]


@pytest.fixture
def schedule(new_job: Any) -> Callable[..., Any]:
    """Create schedules through the SDK."""

    def create(server: Server, **options: Any) -> Any:
        values = options.pop("parameter_values", {})
        defaults = {"cron": "* * * * *", "display_name": "every minute"}
        return new_job(server, parameter_values=values).create_schedule(**(defaults | options))

    return create


def resource(schedule: Any) -> Any:
    """Return the server's current resource."""
    return schedule.api_client.get_schedule(name=schedule.resource_name)


def runs(schedule: Any) -> list[Any]:
    """Return the runs that it started, the oldest first."""
    return sorted(schedule.list_jobs(), key=lambda job: str(job.create_time))


def test_a_schedule_is_created_changed_paused_resumed_listed_and_deleted(
    server: Server, schedule: Any, sdk: Any
) -> None:
    weekly = schedule(server, cron="TZ=Europe/Berlin 0 3 * * 1", display_name="weekly")
    assert weekly.state.name == "ACTIVE"
    due = resource(weekly).next_run_time
    assert (due.weekday(), due.minute, due.hour in (1, 2)) == (0, 0, True)
    weekly.pause()
    assert weekly.state.name == "PAUSED"
    weekly.resume(catch_up=False)
    assert weekly.state.name == "ACTIVE"
    weekly.update(display_name="monthly", cron="0 4 1 * *", max_run_count=5)
    changed = resource(weekly)
    assert (changed.display_name, changed.max_run_count) == ("monthly", 5)
    assert (changed.next_run_time.day, changed.next_run_time.hour) == (1, 4)
    listed = sdk(server).PipelineJobSchedule.list(filter='display_name="monthly" AND state="ACTIVE"')
    assert [each.resource_name for each in listed] == [weekly.resource_name]
    name = weekly.resource_name
    weekly.delete()
    with pytest.raises(exceptions.NotFound):
        sdk(server).PipelineJobSchedule.get(name)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"cron": "* * * *"}, "five fields"),
        ({"cron": "99 * * * *"}, "cron"),
        ({"cron": "0 0 31 2 *"}, "ever comes|cron"),
        ({"cron": "TZ=Mars/Olympus 0 3 * * 1"}, "IANA"),
        ({"cron": "TZ=../../etc/passwd 0 3 * * 1"}, "IANA"),
        ({"max_concurrent_run_count": -1}, "maxConcurrentRunCount"),
        ({"start_time": "2030-01-01T00:00:00Z", "end_time": "2029-01-01T00:00:00Z"}, "endTime"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(
    server: Server, schedule: Any, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(exceptions.BadRequest, match=reason):
        schedule(server, **options)


def test_two_schedules_fire_concurrently_and_keep_their_limits(
    start_server: Callable[..., Server], schedule: Any
) -> None:
    """A minute of the schedules is two real seconds, and no run ends by itself."""
    server = start_server("--time-factor", "30")
    long = {"parameter_values": {"seconds": 3600}}
    skips = schedule(server, display_name="skips", **long)
    queues = schedule(server, display_name="queues", allow_queueing=True, max_concurrent_run_count=2, **long)
    wait_until(lambda: "SKIPPED" in resource(skips).last_scheduled_run_response.run_response)
    assert resource(skips).started_run_count == len(runs(skips)) == 1
    # Two run at a time, and the third starts late as soon as one of them has ended.
    running, cancelled = "PIPELINE_STATE_RUNNING", "PIPELINE_STATE_CANCELLED"
    wait_until(lambda: states(queues) == [running] * 2)
    due = resource(queues).next_run_time.timestamp()
    wait_until(lambda: clock(server, schedule) > due + 60)
    assert (resource(queues).started_run_count, resource(queues).next_run_time.timestamp()) == (2, due)
    runs(queues)[0].cancel()
    wait_until(lambda: states(queues) == [cancelled, running, running])
    queues.pause()
    jobs = runs(queues)
    for job in jobs[1:]:
        job.cancel()
    active = [
        sum(a.start_time <= b.start_time < (a.end_time or datetime.max) for a in ended(jobs)) for b in ended(jobs)
    ]
    assert max(active) == 2
    instants = scheduled_minutes(jobs)
    assert [b - a for a, b in pairwise(instants)] == [60] * (len(instants) - 1)


def states(schedule: Any) -> list[str]:
    """Return the states of its runs, the oldest first."""
    return [each.state.name for each in runs(schedule)]


def ended(jobs: list[Any]) -> list[Any]:
    """Wait for jobs to end and return their resources."""
    for job in jobs:
        job.wait()
    return [job.gca_resource for job in jobs]


def scheduled_minutes(jobs: list[Any]) -> list[float]:
    """Return the scheduled instants of jobs, in seconds since the epoch, from the jobs' ids."""
    stamps = sorted(job.name.split("-")[1] for job in jobs)
    return [datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp() for stamp in stamps]


@pytest.mark.parametrize("catch_up", [True, False])
def test_missed_runs_start_later_only_with_catch_up(
    start_server: Callable[..., Server], schedule: Any, catch_up: bool
) -> None:
    server = start_server("--time-factor", "120")
    each_minute = schedule(server, max_concurrent_run_count=1000)
    wait_until(lambda: resource(each_minute).started_run_count >= 1)
    each_minute.pause()
    paused = resource(each_minute)
    # Another schedule's creation time shows the clock of the schedules.
    wait_until(lambda: clock(server, schedule) - paused.last_pause_time.timestamp() > 240)
    assert resource(each_minute).started_run_count == paused.started_run_count
    # The SDK's own resume() drops the flag (google-cloud-aiplatform 1.165.1), its client does not.
    each_minute.api_client.resume_schedule(request={"name": each_minute.resource_name, "catch_up": catch_up})
    resumed = resource(each_minute).last_resume_time.timestamp()
    wait_until(lambda: resource(each_minute).last_scheduled_run_response.scheduled_run_time.timestamp() > resumed)
    each_minute.pause()
    missed = [t for t in scheduled_minutes(runs(each_minute)) if paused.last_pause_time.timestamp() < t < resumed]
    assert (len(missed) >= 4) if catch_up else (missed == [])


@pytest.mark.parametrize("allow_queueing", [True, False])
def test_what_a_sleeping_machine_missed_starts_later_only_with_queueing(
    start_server: Callable[..., Server], schedule: Any, allow_queueing: bool
) -> None:
    server = start_server("--time-factor", "60")
    each_minute = schedule(server, max_concurrent_run_count=1000, allow_queueing=allow_queueing)
    wait_until(lambda: resource(each_minute).started_run_count >= 1)
    asleep = clock(server, schedule)
    os.kill(server.process.pid, signal.SIGSTOP)
    # 13 instants, most of which are before the limit for being late.
    time.sleep(13)
    os.kill(server.process.pid, signal.SIGCONT)
    awake = clock(server, schedule)
    assert awake - asleep > 12 * 60
    wait_until(lambda: resource(each_minute).last_scheduled_run_response.scheduled_run_time.timestamp() > awake)
    each_minute.pause()
    # A start may have been under way before the machine slept, and an instant may pass before `awake` is read.
    missed = [each for each in scheduled_minutes(runs(each_minute)) if asleep + 60 < each < awake - 120]
    assert (len(missed) >= 9) if allow_queueing else (missed == [])


def clock(server: Server, schedule: Any) -> float:
    """Return the current time of the server's schedules, in seconds since the epoch."""
    probe = schedule(server, display_name="probe", cron="0 0 1 1 *")
    return float(resource(probe).create_time.timestamp())


def test_a_schedule_is_completed_after_its_last_run_or_its_end(
    start_server: Callable[..., Server], schedule: Any
) -> None:
    server = start_server("--time-factor", "120")
    counted = schedule(server, max_run_count=2, max_concurrent_run_count=5)
    wait_until(lambda: counted.state.name == "COMPLETED")
    assert len(runs(counted)) == resource(counted).started_run_count == 2
    for job in runs(counted):
        job.wait()
        (data,) = (each.outputs["data"].artifacts[0] for each in job.task_details if each.task_name == "wait")
        # The instant at which it was due, not started; the name of the run contains it, too.
        moment = datetime.fromisoformat(data.metadata["scheduled"])
        assert moment.second == 0
        assert f"-{moment:%Y%m%d%H%M%S}-" in job.name
    now = clock(server, schedule)
    start, end = (datetime.fromtimestamp(now + seconds, UTC).isoformat() for seconds in (600, 700))
    timed = schedule(server, start_time=start, end_time=end, max_concurrent_run_count=5)
    assert resource(timed).next_run_time.timestamp() >= now + 600
    wait_until(lambda: timed.state.name == "COMPLETED")
    assert 1 <= len(runs(timed)) <= 2
    with pytest.raises(exceptions.BadRequest, match="COMPLETED"):
        timed.api_client.pause_schedule(name=timed.resource_name)


def test_schedules_survive_a_restart_and_no_instant_runs_twice(
    start_server: Callable[..., Server], schedule: Any, new_job: Any
) -> None:
    server = start_server("--time-factor", "60")
    each_minute = schedule(server, max_concurrent_run_count=10)
    wait_until(lambda: resource(each_minute).started_run_count >= 2)
    name = each_minute.resource_name.rpartition("/")[2]
    server.end(9)
    before = {path.stem for path in (server.work_dir / "api" / "pipelineJobs").glob("*.json")}
    again = start_server("--time-factor", "60")
    count = len(before)
    wait_until(lambda: int(again.call("GET", f"schedules/{name}").json()["startedRunCount"]) > count)
    answer = again.call("POST", f"schedules/{name}:pause", {})
    assert answer.status_code == 200
    jobs = again.call("GET", "pipelineJobs", params={"readMask": "name"}).json()["pipelineJobs"]
    stamps = [job["name"].rpartition("/")[2].split("-")[1] for job in jobs]
    assert len(stamps) == len(set(stamps)) >= count + 1
