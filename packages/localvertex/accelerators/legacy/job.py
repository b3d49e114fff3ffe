"""A legacy Job as a CustomJob or HyperparameterTuningJob of Vertex AI."""

import re
from typing import Any

from accelerators.legacy.machines import MachineConverter
from accelerators.legacy.pools import worker_pools
from accelerators.legacy.report import Kind, Report
from accelerators.legacy.tuning import tuning_job
from localvertex_base.userinput.spelling import closest, join_or, quote

NAME_PLACEHOLDER = "JOB_NAME"
_MAX_NAME = 128
_STRATEGIES = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT"}
_UNFILLED = re.compile(r"\$\{?\w+\}?|\$\(|%\w+%|`|\{\w+\}|<[A-Za-z][\w -]*>")
"""Variables of a shell, a template's braces, a placeholder of a guide."""


def vertex_job(job: dict[str, Any], converter: MachineConverter, report: Report) -> dict[str, Any]:
    """Return the fields of a CustomJob, or of a HyperparameterTuningJob if the job tuned hyperparameters."""
    training = job.get("trainingInput", {})
    spec: dict[str, Any] = {"worker_pool_specs": worker_pools(training, converter, report)}
    scheduling = _scheduling(training.get("scheduling") or {}, report)
    if scheduling:
        spec["scheduling"] = scheduling
    for old, new in (("serviceAccount", "service_account"), ("network", "network")):
        if training.get(old):
            spec[new] = training[old]
    if training.get("enableWebAccess"):
        spec["enable_web_access"] = True
    _not_carried_over(training, report)
    if training.get("jobDir"):
        spec["base_output_directory"] = {"output_uri_prefix": training["jobDir"]}
    _roles_in_tf_config(training, spec, report)
    _unfilled_names(job, report)
    made: dict[str, Any] = {"display_name": _name(job, report)}
    if job.get("labels"):
        made["labels"] = job["labels"]
    key = (training.get("encryptionConfig") or {}).get("kmsKeyName")
    if key:
        made["encryption_spec"] = {"kms_key_name": key}
    if training.get("hyperparameters"):
        return made | tuning_job(training["hyperparameters"], report) | {"trial_job_spec": spec}
    return made | {"job_spec": spec}


def _name(job: dict[str, Any], report: Report) -> str:
    name = job.get("jobId") or ""
    if not name:
        report.add("doubtful", "jobId", f"missing; replace {NAME_PLACEHOLDER} with a name")
        return NAME_PLACEHOLDER
    if len(name) > _MAX_NAME:
        report.add("changed", "jobId", f"cut to {_MAX_NAME} characters, the maximum for a display name")
    return str(name)[:_MAX_NAME]


def _scheduling(old: dict[str, Any], report: Report) -> dict[str, Any]:
    new: dict[str, Any] = {}
    for name, target in (("maxRunningTime", "timeout"), ("maxWaitTime", "")):
        if old.get(name):
            _duration(old[name], name, target, new, report)
    if old.get("strategy"):
        name = str(old["strategy"]).upper().replace("-", "_")
        new["strategy"] = _STRATEGIES.get(name, name)
        if name in _STRATEGIES:
            report.add("changed", "scheduling.strategy", f"{name} is called {_STRATEGIES[name]} now")
        else:
            near = closest(name, _STRATEGIES)
            hint = f"did you mean {near[0]}?" if near else f"expected {join_or(_STRATEGIES)}"
            report.add("decide", "scheduling.strategy", f"{name} was not a strategy of AI Platform Training; {hint}")
    if "resilientToWorkerRestart" in old:
        # Despite its name: both references say that the whole job is restarted when a worker is.
        new["restart_job_on_worker_restart"] = old["resilientToWorkerRestart"]
        message = "called restart_job_on_worker_restart now; true restarts the whole job when a worker restarts"
        report.add("changed", "scheduling.resilientToWorkerRestart", message)
    if "priority" in old:
        report.add("dropped", "scheduling.priority", "Vertex AI custom jobs have no priority")
    return new


def _duration(value: str, name: str, target: str, new: dict[str, Any], report: Report) -> None:
    text = f"{value}s" if value.isdecimal() else value
    if not target:
        message = f"{value}: Vertex AI limits the waiting time only with FLEX_START (max_wait_duration)"
        report.add("dropped", f"scheduling.{name}", message)
    elif re.fullmatch(r"\d{1,12}(\.\d{1,9})?s", text):
        new[target] = text
    else:
        message = (
            f"{value!r} is not a duration; expected seconds, e.g. 7200s: left out, so the default of 7 days applies"
        )
        report.add("decide", f"scheduling.{name}", message)


def _roles_in_tf_config(training: dict[str, Any], spec: dict[str, Any], report: Report) -> None:
    pools = [pool for pool in spec["worker_pool_specs"] if pool]
    chief = training.get("useChiefInTfConfig")
    if chief is not None:
        report.add("dropped", "useChiefInTfConfig", "Vertex AI always uses chief in TF_CONFIG")
    old_runtime = re.match(r"1\.|2\.0", str(training.get("runtimeVersion") or "")) is not None
    own_image = bool((training.get("masterConfig") or {}).get("imageUri"))
    if len(pools) > 1 and not chief and (own_image or old_runtime):
        message = "the first replica was called master and is called chief now; change code that looks for master"
        report.add("doubtful", "TF_CONFIG", message)


def is_filled_in(text: str) -> bool:
    """Return whether a text is a value, and not a variable or placeholder for one."""
    return _UNFILLED.search(text) is None


def _unfilled_names(job: dict[str, Any], report: Report) -> None:
    for path, text in _texts(job, ""):
        if not is_filled_in(text):
            what = "shell variable" if re.search(r"[$%`]", text) else "placeholder"
            # An argument may contain such a text by intention, a field cannot.
            kind: Kind = "doubtful" if path.endswith("]") else "decide"
            report.add(
                kind,
                path.removeprefix("trainingInput."),
                f"{text} contains a {what}, which is kept and not expanded; write the value",
            )


def _not_carried_over(training: dict[str, Any], report: Report) -> None:
    folder = str(training.get("jobDir") or "")
    if folder and not folder.startswith("gs://") and is_filled_in(folder):
        message = f"{quote(folder)} is not in Cloud Storage; the service refuses it, so give a gs:// address"
        report.add("decide", "jobDir", message)
    if training.get("nasJobSpec"):
        message = "Neural Architecture Search has a service of its own on Vertex AI; only its machines are converted"
        report.add("decide", "nasJobSpec", message)


def _texts(value: Any, path: str) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in _texts(inner, f"{path}.{key}" if path else str(key))]
    if isinstance(value, list):
        return [pair for index, inner in enumerate(value) for pair in _texts(inner, f"{path}[{index}]")]
    return []
