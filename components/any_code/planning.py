"""The step `plan`: decides what to train on which machines, and whether that was done already."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from components.any_code import evidence
from components.any_code.request import Goal, check_contents, identity, read
from components.compare.criteria import Criteria
from components.container_image import check_image
from components.names import check_names
from components.plan.report import report_plan
from components.registry.registry import Registry
from components.release.serving_machines import check_deployment
from components.train import fallbacks, secret_variables
from components.train.machines import Machines, check_any_code
from components.values import machines_in, replicas_in
from exact_resume.checkpoints import manifest, seal
from exact_resume.files import storage
from localvertex._base.step_endpoint import is_local_step
from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError
from localvertex.machines import Finding
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.results import outcome
from trainer.settings import NUMBER, check as check_setting, from_values


class CodePlan(NamedTuple):
    """The fields of the training job; they are the outputs of the `plan` step."""

    worker_pool_specs: list[dict[str, Any]]
    restart_job_on_worker_restart: bool
    timeout: str
    max_wait_duration: str
    persistent_resource_id: str
    display_name: str
    run_id: str
    base_output_directory: str
    checkpoint_directory: str
    is_finished: bool
    labels: dict[str, str]
    inputs_sha256: str


def check(values: Mapping[str, Any], *, region: str) -> tuple[dict[str, Any], Machines, list[Finding]]:
    """Check the values of all steps, and return the request, the machines and the warnings.

    Args:
        values: Values by the names of the pipeline's parameters and settings.
        region: Vertex AI region, e.g. us-central1.

    Raises:
        UserError: A value is wrong, or Vertex AI would refuse the machines.
    """
    request, machines = read(values), machines_in(values)
    if machines is None:
        raise UserError("machine_type is missing; expected e.g. n1-standard-8")
    if values["model_name"]:
        check_names(model_name=values["model_name"])
        check_image("serving_image", values["serving_image"])
    elif values["deploy_endpoint"]:
        raise UserError("deploy_endpoint is set, but model_name is empty; only a registered model is deployed")
    goal_of(values)
    from_values(Criteria, values)
    findings = check_any_code(machines, image=request["image"], region=region)
    # Any code may promise the same weights; `exact` belongs to this project's own trainer.
    findings += fallbacks.check(values, image=request["image"], region=region, check_machines=check_any_code)
    findings += check_deployment(values["deploy_endpoint"], replicas_in(values), region=region)
    return request, machines, findings


def goal_of(values: Mapping[str, Any]) -> Goal:
    """Return the goal; an empty minimum accepts any value."""
    given = {name: value for name, value in values.items() if value != ""}
    if "minimum_metric" in given:
        given["minimum_metric"] = check_setting("minimum_metric", given["minimum_metric"], NUMBER)
    return from_values(Goal, given)


def plan(*, report: str, region: str, pipeline_root: str, **values: Any) -> CodePlan:
    """Check all values, derive the run id from what decides the result, and write the report.

    Args:
        report: Path of the HTML file to write.
        region: Vertex AI region, e.g. us-central1.
        pipeline_root: Folder or gs:// prefix; its `training/<run id>` outlives this run.
        **values: Values by the names of the pipeline's parameters and settings.

    Raises:
        UserError: A value is wrong, or Vertex AI would refuse the machines.
    """
    request, machines, findings = check(values, region=region)
    chosen = identity(request)
    run_id = manifest.run_id(chosen)
    training = f"{paths.check('pipeline_root', pipeline_root).rstrip('/')}/training"
    base = f"{training}/{run_id}"
    is_finished = outcome.completion(f"{base}/checkpoints/").get("run_id") == run_id
    notes = []
    if "@" not in request["image"]:
        notes.append(f"notice: {request['image']} has no digest; a rebuilt image is taken for the same code")
    variables: dict[str, str] = {}
    if values["model_name"] and not is_finished:
        registry = Registry(region=region, pipeline_root=pipeline_root)
        variables, found = _champion(registry, values["model_name"], base)
        notes += found
    command, secrets = request["command"], request["secrets"]
    if secrets:
        source = pathlib.Path(secret_variables.__file__).read_text(encoding="utf-8")
        command = ["python3", "-c", source, *map("=".join, secrets.items()), "--", *command]
    inputs = {f"INPUT_{name.upper()}": address.rpartition("#")[0] for name, address in request["inputs"].items()}
    job = machines.job(
        training=training,
        run_id=run_id,
        name=values["model_name"] or "training",
        image=request["image"],
        args=request["arguments"],
        command=command,
        env=inputs | request["environment"] | variables,
    )
    state = "to be trained"
    if is_finished:
        state = "already finished, not trained again; set another run_label to train again"
    elif not is_local_step():
        # A local run reads no bucket.
        check_contents(request["inputs"])
    report_plan(
        report,
        machines=machines,
        region=region,
        findings=findings,
        run_id=run_id,
        state=state,
        configuration=chosen | {"secrets": secrets},
        notes=notes,
    )
    return CodePlan(
        **job, is_finished=is_finished, labels=request["labels"], inputs_sha256=seal.digest(request["inputs"])
    )


def _champion(registry: Registry, model_name: str, base: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables by which the program finds the champion, which do not identify the run, and a note.

    Args:
        registry: The Model Registry.
        model_name: Display name in it.
        base: Folder of the run, which receives the ids of the champion's test examples.
    """
    model = registry.find(model_name)
    champion = registry.champion(model) if model else None
    if champion is None or not champion.artifact_uri:
        return {}, []
    variables = {"CHAMPION_MODEL": champion.artifact_uri}
    try:
        lines = evidence.read_of_model(champion.artifact_uri).unseen.values()
    except UserError as error:
        return variables, [f"notice: CHAMPION_TEST_IDS is not set: {error}"]
    if lines:
        path = storage.join(base, "champion_test_ids.jsonl")
        storage.write_text(path, "".join(json.dumps({"id": line["id"]}) + "\n" for line in lines))
        variables["CHAMPION_TEST_IDS"] = path
    return variables, [f"the champion is {champion.name}; CHAMPION_TEST_IDS has {len(lines):,} ids"]
