"""A training over several machines with a service that loses answers, does not list, or lists late."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.train.custom_jobs import CustomJobs, Job, Refused
from components.train.failover import Failover, Request, Stopped
from components.train.fallbacks import Fallbacks, candidates
from components.train.journey import Journey, Leg
from trainer.command_line import TrainingError
from trainer.google_errors import GoogleError

HOME, OTHER = "us-central1", "europe-west4"
LOST = GoogleError(code=503, message="the answer was lost", may_have_arrived=True)
QUOTA = GoogleError(code=429, message="quota", may_have_arrived=False)


def a_job(name: str, *, region: str = HOME, task: str = "7", candidate: int = 0, **fields: Any) -> Job:
    labels = {"run_id": "r", "task": task, "candidate": str(candidate), "attempt": "1"}
    job = Job(
        name=name,
        region=region,
        state="JOB_STATE_RUNNING",
        code=0,
        message="",
        created=time.time(),
        started=time.time(),
        ended=0.0,
        labels=labels,
    )
    return dataclasses.replace(job, **fields)


class Service(CustomJobs):
    """Jobs that end at once with success, and are cancelled at once."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.created: list[tuple[str, list[str]]] = []
        """Each created job, with those that were active."""
        self.silent: set[str] = set()
        self.on_list: Callable[[], Any] = lambda: None
        self.answers: list[Callable[[str, dict[str, Any]], Job]] = []
        """The first answers to requests for a job."""

    def create(self, region: str, job: dict[str, Any]) -> Job:
        if self.answers:
            return self.answers.pop(0)(region, job)
        name, labels = f"job-{len(self.jobs)}", job["labels"]
        self.created.append((name, self.active))
        fields = {"state": "JOB_STATE_SUCCEEDED", "ended": time.time(), "labels": dict(labels)}
        self.jobs[name] = a_job(name, region=region, **fields)
        return self.jobs[name]

    @property
    def active(self) -> list[str]:
        return [name for name, job in self.jobs.items() if not job.has_ended]

    def labelled(self, region: str, **labels: str) -> list[Job]:
        self.on_list()
        if region in self.silent:
            raise TrainingError(f"the jobs of {region} cannot be listed")
        found = [job for job in self.jobs.values() if job.region == region and labels.items() <= job.labels.items()]
        return sorted(found, key=lambda job: job.created)

    def cancel(self, job: Job) -> None:
        if not self.jobs[job.name].has_ended:
            self.end(job.name, "JOB_STATE_CANCELLED")

    def get(self, job: Job) -> Job | None:
        return self.jobs.get(job.name)

    def end(self, name: str, state: str, **fields: Any) -> None:
        self.jobs[name] = dataclasses.replace(self.jobs[name], state=state, ended=time.time(), **fields)


class After:
    """Does something at the call of a number."""

    def __init__(self, number: int, action: Callable[[], Any]) -> None:
        self.number, self.action = number, action

    def __call__(self) -> None:
        self.number -= 1
        if not self.number:
            self.action()


def stop() -> None:
    raise Stopped


def step(service: Service, folder: Path, task: str = "7") -> Failover:
    """Return an attempt at the step."""
    request = Request(
        run_id="r",
        task=task,
        display_name="training",
        base_output_directory=str(folder),
        image="image",
        command=["train"],
        args=[],
        env={},
        servers=[],
        labels={},
        service_account="",
        network="",
        tensorboard="",
        kms_key="",
    )
    entries = [{"machine_type": "n1-standard-4"}, {"machine_type": "n1-standard-4", "region": OTHER}]
    return Failover(
        request,
        candidates(entries, {"timeout_seconds": 600, "max_wait_seconds": 50}, region=HOME),
        Fallbacks(fallbacks=[{"region": OTHER}]),
        jobs=service,
        journey=Journey(str(folder), task),
        poll_seconds=0.01,
        announce=lambda text, job: None,
        silent_seconds=0.5,
    )


def add(folder: Path, **fields: Any) -> None:
    """Write a leg of an earlier attempt."""
    leg = {"task": "7", "candidate": 0, "attempt": 1, "machines": "m", "region": HOME, "submitted": time.time() - 5}
    Journey(str(folder), "7").add(Leg(**leg | fields))


def whys(folder: Path) -> list[str]:
    return [leg.why for leg in Journey(str(folder), "7").own]


def test_a_cancel_reaches_the_job_although_another_region_does_not_answer(tmp_path: Path) -> None:
    service = Service()
    service.jobs["a"] = a_job("a")
    add(tmp_path, job="a")
    service.on_list = After(4, lambda: (service.silent.add(OTHER), stop()))
    with pytest.raises(Stopped):
        step(service, tmp_path).run()
    assert service.active == []
    # Nobody knows whether a job is left in the other region: the next attempt looks.
    assert whys(tmp_path) == [""]


def test_a_program_that_fails_while_its_job_is_being_given_up_has_failed(tmp_path: Path) -> None:
    service = Service()
    service.jobs["a"] = a_job("a")
    service.end("a", "JOB_STATE_FAILED", code=3, message="exit code 1")
    add(tmp_path, job="a", leaving="queue")
    with pytest.raises(TrainingError, match="exit code 1"):
        step(service, tmp_path).run()
    assert (whys(tmp_path), service.created) == (["failed"], [])


@pytest.mark.parametrize("code", [3, 5, 13])
def test_a_late_failure_before_a_start_is_no_queue(tmp_path: Path, code: int) -> None:
    service = Service()
    service.jobs["a"] = a_job("a", created=time.time() - 1000, started=0.0)
    service.end("a", "JOB_STATE_FAILED", code=code, message="no such image")
    add(tmp_path, job="a")
    with pytest.raises(TrainingError, match="no such image"):
        step(service, tmp_path).run()
    assert service.created == []


def test_no_job_is_created_beside_one_of_a_lost_journey(tmp_path: Path) -> None:
    service = Service()
    service.jobs["a"] = a_job("a", region=OTHER, candidate=1)
    step(service, tmp_path).run()
    assert service.jobs["a"].state == "JOB_STATE_CANCELLED"
    assert [active for _, active in service.created] == [[]]


def test_a_job_that_does_not_stop_keeps_its_leg_open(tmp_path: Path) -> None:
    service = Service()
    service.jobs["a"] = a_job("a")
    add(tmp_path, job="a")
    service.on_list = After(3, stop)
    service.cancel = lambda job: None  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        step(service, tmp_path).run()
    assert whys(tmp_path) == [""]
    service.on_list = After(3, lambda: service.end("a", "JOB_STATE_SUCCEEDED"))
    step(service, tmp_path).run()
    assert (whys(tmp_path), service.created) == (["finished"], [])


def test_a_step_that_is_lost_by_sigterm_trains_again(tmp_path: Path) -> None:
    service = Service()
    service.jobs["a"] = a_job("a")
    add(tmp_path, job="a")
    service.on_list = After(3, stop)
    with pytest.raises(Stopped):
        step(service, tmp_path).run()
    service.on_list = lambda: None
    step(service, tmp_path).run()
    assert whys(tmp_path) == ["interrupted", "finished"]
    assert len(service.created) == 1


def test_a_job_that_is_listed_after_a_sigterm_is_cancelled(tmp_path: Path) -> None:
    service = Service()

    def lose(region: str, job: dict[str, Any]) -> Job:
        service.on_list = After(4, lambda: service.jobs.update(late=a_job("late")))
        raise Stopped

    service.answers = [lose]
    with pytest.raises(Stopped):
        step(service, tmp_path).run()
    assert service.jobs["late"].state == "JOB_STATE_CANCELLED"


def test_a_job_whose_answer_was_lost_is_found(tmp_path: Path) -> None:
    service = Service()

    def lose(region: str, job: dict[str, Any]) -> Job:
        arrival = After(3, lambda: service.jobs.update(late=a_job("late")))
        end = After(12, lambda: service.end("late", "JOB_STATE_SUCCEEDED"))
        service.on_list = lambda: [arrival(), end()]
        raise Refused(LOST)

    service.answers = [lose]
    step(service, tmp_path).run()
    assert (whys(tmp_path), service.created) == (["finished"], [])


def test_a_job_that_is_listed_after_the_move_does_not_train_beside_the_next(tmp_path: Path) -> None:
    service = Service()

    def refuse(error: GoogleError, **late: Job) -> Callable[[str, dict[str, Any]], Job]:
        def answer(region: str, job: dict[str, Any]) -> Job:
            service.jobs.update(late)
            raise Refused(error)

        return answer

    service.answers = [refuse(LOST), refuse(QUOTA), refuse(QUOTA, late=a_job("late"))]
    step(service, tmp_path).run()
    assert service.jobs["late"].state == "JOB_STATE_CANCELLED"
    assert [active for _, active in service.created] == [[]]
    assert whys(tmp_path) == ["quota", "finished"]


def test_an_adopted_job_gives_way_to_an_older_one_of_another_task(tmp_path: Path) -> None:
    service = Service()
    service.jobs["older"] = a_job("older", task="6", created=time.time() - 9)
    service.jobs["a"] = a_job("a")
    add(tmp_path)
    service.on_list = After(15, lambda: service.end("older", "JOB_STATE_SUCCEEDED"))
    step(service, tmp_path).run()
    assert whys(tmp_path) == ["other run", "finished"]
    assert [active for _, active in service.created] == [[]]


def test_two_tasks_of_a_run_write_files_of_their_own(tmp_path: Path) -> None:
    one, two = Journey(str(tmp_path), "7"), Journey(str(tmp_path), "8")
    fields = {"candidate": 0, "attempt": 1, "machines": "m", "region": HOME}
    one.add(Leg(task="7", submitted=1.0, **fields))
    two.add(Leg(task="8", submitted=2.0, **fields))
    one.add(Leg(task="7", submitted=3.0, **fields))
    assert [leg.task for leg in Journey(str(tmp_path), "8").legs] == ["7", "8", "7"]


def test_a_second_attempt_after_a_refusal_says_why(tmp_path: Path) -> None:
    add(tmp_path, why="failed", message="permission denied (no role)")
    with pytest.raises(TrainingError, match=r"^the training job failed in an earlier attempt: permission denied"):
        step(Service(), tmp_path).run()


def test_a_finished_training_needs_no_job_any_more(tmp_path: Path) -> None:
    add(tmp_path, job="deleted", why="finished")
    step(Service(), tmp_path).run()
    assert whys(tmp_path) == ["finished"]
