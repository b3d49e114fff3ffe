"""The table of facts: each row is complete, its source is a public page, and localvertex does what it says."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from localvertex_tests.values import fidelity_page

from localvertex.__main__ import _parser
from localvertex.containers import variables
from localvertex.jobs.faults.faults import DEFAULT_GRACE_SECONDS, Action
from localvertex.jobs.job import Scheduling
from localvertex.jobs.restart_rules import Restarts, Verdict
from localvertex.runner.options import Options
from localvertex.values.facts import Fact, facts, group, number

SOURCES = ("cloud.google.com", "www.kubeflow.org", "github.com")
VERDICTS = {
    "ends the job": Verdict.FAIL,
    "restarts the job": Verdict.RESTART_JOB,
    "restarts the replica": Verdict.RESTART_REPLICA,
}


@pytest.mark.parametrize("fact", facts().values(), ids=facts())
def test_a_row_has_a_source_exactly_if_it_is_documented(fact: Fact) -> None:
    assert bool(fact.documented) == bool(fact.source)
    assert all((fact.about, fact.here, fact.group, fact.name))
    assert not fact.source or (urlsplit(fact.source).hostname in SOURCES and len(fact.source) <= 80)
    # A value that differs from a documented number has a reason.
    if fact.documented.isdigit() and fact.documented != fact.here:
        assert fact.why
    assert fidelity_page.status_of(fact) is not fidelity_page.Status.SAME or "as on this machine" not in fact.here


@pytest.mark.parametrize("code", [code for code in group("exit") if code != "0"])
def test_an_exit_code_has_the_consequence_of_its_row(code: str) -> None:
    decision = Restarts(scheduling=Scheduling()).after_exit("workerpool1-0", int(code))
    assert decision.verdict is VERDICTS[group("exit")[code].here]
    assert decision.is_permanent == (code in facts()["restarts.permanent"].here.split())


def test_the_budgets_of_restarts_are_those_of_the_table() -> None:
    rules = Restarts(scheduling=Scheduling())
    of_replica = [rules.after_exit("workerpool1-0", 137).verdict for _ in range(7)]
    assert of_replica.index(Verdict.RESTART_JOB) == number("restarts.replica") == 5
    rules = Restarts(scheduling=Scheduling())
    of_job = [rules.after_exit("workerpool1-0", 134).verdict for _ in range(9)]
    assert of_job.index(Verdict.FAIL) == number("restarts.job") == 3
    of_spot = [rules.after_preemption().verdict for _ in range(9)]
    assert of_spot.index(Verdict.FAIL) == number("restarts.spot") == 6


def test_times_are_those_of_the_table() -> None:
    assert Options().grace_seconds == _parser().parse_args(["run", "f"]).grace == number("grace.end") == 10
    assert number("grace.timeout") == number("grace.cancel") == number("grace.end")
    assert Scheduling().timeout_seconds == number("limit.timeout_seconds") == 7 * 24 * 3600
    assert {Action.SIGTERM: 30, Action.PREEMPT: 30, Action.MAINTENANCE: 60} == DEFAULT_GRACE_SECONDS
    assert [number(f"grace.{name}") for name in ("stop", "preemption", "maintenance")] == [30, 30, 60]


def test_the_names_of_variables_are_those_of_the_service() -> None:
    names = (variables.CLUSTER_SPEC, variables.TF_CONFIG, variables.PROJECT_ID, variables.JOB_ID)
    assert names == ("CLUSTER_SPEC", "TF_CONFIG", "CLOUD_ML_PROJECT_ID", "CLOUD_ML_JOB_ID")
    assert (variables.TRIAL_ID, variables.METRIC_FILE) == ("CLOUD_ML_TRIAL_ID", "CLOUD_ML_HP_METRIC_FILE")
    assert variables.TORCH == ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    folders = {"AIP_MODEL_DIR": "model", "AIP_CHECKPOINT_DIR": "checkpoints", "AIP_TENSORBOARD_LOG_DIR": "logs"}
    assert folders == variables.OUTPUT_FOLDERS


def test_the_page_is_generated_and_calls_nothing_measured(package: Path) -> None:
    page = (package / "docs" / "fidelity.md").read_text()
    assert page == fidelity_page.written()
    assert "Measured on Vertex AI: none yet" in page
    assert all(page.count(f"`{fact_id}`") >= 1 for fact_id in facts())
