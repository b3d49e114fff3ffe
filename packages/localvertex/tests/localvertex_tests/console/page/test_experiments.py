"""The runs of experiments as the console lists them: those of the SDK, and pipelines of an experiment."""

from pathlib import Path
from typing import Any

from localvertex_tests.api.metadata.test_pipeline_runs import ROOT, Api
from localvertex_tests.support.run_records import write_job

from localvertex.console.local_route import LocalCall
from localvertex.console.runs.experiments import Experiments
from localvertex.console.runs.listing import RunList


def test_runs_of_experiments_have_their_parameters_and_metrics(tmp_path: Path) -> None:
    api = Api(tmp_path)

    def add(name: str, title: str, **fields: Any) -> None:
        api.ask("default/contexts", "create", contextId=name, body={"schemaTitle": title, **fields})

    add("digits", "system.Experiment", displayName="Digits")
    for number in range(2):
        logged = {"_state": "COMPLETE", "_params": {"rate": number / 2, "size": 3}, "_metrics": {"loss": number}}
        add(f"digits-{number}", "system.ExperimentRun", displayName=f"try {number}", metadata=logged)
    write_job(tmp_path, 7)
    add("broken", "system.ExperimentRun", metadata={"_state": 3, "_params": "x", "_metrics": ["y"]})
    children = [f"{ROOT}/contexts/{each}" for each in ("digits-0", "digits-1", "run-00007", "broken")]
    api.ask("default/contexts", "addChildren", "digits", {"childContexts": children})
    add("alone", "system.ExperimentRun")

    store = api.service._store
    found = Experiments(store, RunList(store)).page(LocalCall(query={"order_by": "metrics.loss"}))
    rows = {each["id"]: each for each in found["runs"]}
    assert {*rows} == {"digits-0", "digits-1", "run-00007", "broken"}
    assert [each["id"] for each in found["runs"]][:2] == ["digits-0", "digits-1"]
    assert rows["digits-1"]["parameters"] == {"rate": 0.5}
    assert rows["digits-1"]["metrics"] == {"loss": 1}
    assert [rows["digits-1"][name] for name in ("name", "pipeline", "state")] == ["try 1", "Digits", "COMPLETE"]
    assert (rows["run-00007"]["state"], rows["run-00007"]["is_own"]) == ("SUCCEEDED", True)
    assert rows["broken"]["metrics"] == {}
    assert found["ranges"]["Digits"] == {"loss": (0, 1)}
