"""Records what the platform does. The steps and replicas of the probe run this text as `python3 -c`.

Standard library only. It records names of variables and classes of values, never a value that it was given: no
address, name of a project or bucket, token or secret. `main` lists the modes; each writes small files under BASE, and
`collect` puts them together. Every process ends itself after 14 minutes, so that the cost has a bound.
"""

import json
import os
import re
import resource
import signal
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from typing import Any

LIMIT_SECONDS = 14 * 60
_WAIT_SECONDS = 240.0
_TICK_SECONDS = 0.25


def folder(base: str) -> str:
    """Return the folder of the records: an address in a bucket by its mount."""
    if "{{" in base:
        # The platform has not resolved the placeholders in the arguments of a replica.
        base = os.environ["AIP_MODEL_DIR"].rstrip("/").removesuffix("/model")
    path = base.replace("gs://", "/gcs/", 1)
    os.makedirs(path, exist_ok=True)
    return path


def write(base: str, name: str, content: Any) -> None:
    """Write one file of the record, whole: the process may be killed meanwhile."""
    path = f"{folder(base)}/{name}"
    with open(f"{path}.partial", "w") as file:
        json.dump(content, file)
    os.replace(f"{path}.partial", path)


def found(base: str, beginning: str) -> list[str]:
    """Return the files of the record whose names begin so."""
    names = sorted(os.listdir(folder(base)))
    return [name for name in names if name.startswith(beginning) and not name.endswith(".partial")]


def read(base: str, name: str) -> Any:
    """Return the content of one file of the record, or an empty object."""
    try:
        with open(f"{folder(base)}/{name}") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def wait_for(base: str, beginning: str) -> bool:
    """Wait for a file of another replica."""
    end = time.monotonic() + _WAIT_SECONDS
    while not found(base, beginning) and time.monotonic() < end:
        time.sleep(_TICK_SECONDS)
    return bool(found(base, beginning))


def metadata(path: str) -> str:
    """Return what the metadata server answers: a state in capitals, or only that it answers, or the status."""
    host = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
    request = urllib.request.Request(f"http://{host}/computeMetadata/v1/{path}", headers={"Metadata-Flavor": "Google"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=5) as answer:
            text = answer.read(200).decode(errors="replace")
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except OSError:
        return "no server"
    return text if re.fullmatch("[A-Z_]{1,40}", text) else "answers"


def machine() -> dict[str, str]:
    """Return the facts of the machine that a process sees, without a value of its own."""
    memory = resource.getrlimit(resource.RLIMIT_AS)[0]
    name = os.uname().nodename
    return {
        "user": "root" if os.getuid() == 0 else "another user",
        "mount": "mounted" if os.path.isdir("/gcs") else "absent",
        "folder": "/" if os.getcwd() == "/" else "another folder",
        "address_space": "unlimited" if memory == resource.RLIM_INFINITY else "limited",
        "host_name": "its replica" if re.match("(cmle-training-)?workerpool[0-9]", name) else "another name",
    }


def shape(spec: str) -> dict[str, str]:
    """Return the structure of CLUSTER_SPEC or TF_CONFIG, without addresses."""
    content = json.loads(spec) if spec else {}
    if not content:
        return {}
    job = content.get("job", "")
    return {
        "fields": " ".join(sorted(content)),
        "cluster": " ".join(f"{name}:{len(each)}" for name, each in sorted(content.get("cluster", {}).items())),
        "task": " ".join(sorted(content.get("task", {}))),
        "environment": str(content.get("environment", ""))[:20],
        "job": f"JSON {'text' if isinstance(job, str) else 'object'}",
    }


def below(base: str, address: str) -> str:
    """Return the name of a folder in BASE."""
    name = address.rstrip("/").removeprefix(base).lstrip("/")
    return name if re.fullmatch("[a-z]{1,20}", name) else "another folder"


def replica(base: str) -> None:
    """Record what a replica sees; the primary waits for the worker, which waits for its own end."""
    spec = json.loads(os.environ.get("CLUSTER_SPEC", "{}"))
    role = "primary" if spec.get("task", {}).get("type") == "workerpool0" else "worker"
    paths = ("instance/preempted", "instance/maintenance-event", "instance/service-accounts/default/aliases")
    folders = ("AIP_MODEL_DIR", "AIP_CHECKPOINT_DIR", "AIP_TENSORBOARD_LOG_DIR")
    record = {
        "names": sorted(os.environ),
        "machine": machine(),
        "metadata": {path: metadata(path) for path in (*paths, "instance/zone", "project/project-id")},
        "folders": {name: below(base, os.environ[name]) for name in folders if name in os.environ},
        "cluster_spec": shape(os.environ.get("CLUSTER_SPEC", "")),
        "tf_config": shape(os.environ.get("TF_CONFIG", "")),
        "project_id": "a number" if os.environ.get("CLOUD_ML_PROJECT_ID", "").isdigit() else "a name",
    }
    if role == "primary":
        write(base, "replica-primary", record)
        wait_for(base, "replica-worker")
        return
    signal.signal(signal.SIGTERM, lambda *_: write(base, "end-signal", time.time()))
    write(base, "replica-worker", record)
    while True:
        time.sleep(_TICK_SECONDS)
        if found(base, "end-signal"):
            # A new file each time: buckets take one change of an object per second.
            write(base, f"end-tick-{time.time():.2f}", time.time())


def exits(base: str, code: str) -> None:
    """End a worker with an exit code at its first start, and count the starts of both replicas."""
    is_worker = json.loads(os.environ.get("CLUSTER_SPEC", "{}")).get("task", {}).get("type") != "workerpool0"
    role = "worker" if is_worker else "primary"
    write(base, f"exit-{code}-{role}-{uuid.uuid4().hex}", 0)
    if not is_worker:
        if not wait_for(base, f"exit-{code}-done"):
            write(base, f"exit-{code}-alone", 0)
        return
    wait_for(base, f"exit-{code}-primary")
    if code == "0" or len(found(base, f"exit-{code}-worker")) > 1:
        write(base, f"exit-{code}-done", 0)
    # The streams have nothing to flush, and exit handlers of the interpreter do not change the code.
    os._exit(0 if found(base, f"exit-{code}-done") else int(code))


def _of_value(text: str) -> str:
    """Return how a constant of the probe arrives, as JSON; nothing else passes."""
    constants = r"""null|None|""|[0-9.]{1,8}|\{"half": [0-9.]{1,8}, "whole": [0-9.]{1,8}\}"""
    return text if re.fullmatch(constants, text) else "another text" if text else "empty"


def _of_placeholder(text: str) -> str:
    """Return the class of a resolved placeholder, without its value."""
    forms = {
        "unresolved": r".*\{\{.*",
        "empty": "",
        "a number": r"[0-9]+",
        "a time": r"[0-9]{4}-[0-9-]+T[0-9:.]+(Z|\+00:00)",
        "a resource name": r"projects/[^/]+/locations/[^/]+/pipelineJobs/[^/]+",
        "an address": r"gs://.*",
        "a path": "/.*",
    }
    return next((name for name, form in forms.items() if re.fullmatch(form, text, re.DOTALL)), "a name")


def optional(base: str, executor_input: str, null: str) -> None:
    """Record an optional parameter without a value, in a step of its own, because the platform may refuse it."""
    values = json.loads(executor_input).get("inputs", {}).get("parameterValues", {})
    arrived = _of_value(json.dumps(values["null"])) if "null" in values else "absent"
    write(base, "optional", {"parameter.null": arrived, "text.null": _of_value(null)})


def step(base: str, executor_input: str, integer: str, *placeholders: str) -> None:
    """Record what a step sees: its machine, parameters, placeholders and the address of its artifact."""
    given = json.loads(executor_input)
    values = given.get("inputs", {}).get("parameterValues", {})
    known = dict(each.split("=", 1) for each in placeholders)
    uri = given["outputs"]["artifacts"]["record"]["artifacts"][0]["uri"]
    address = uri.replace(known["pipeline_root"].rstrip("/"), "ROOT", 1).replace(known["pipeline_job_name"], "JOB")
    address = re.sub("[0-9]{5,}", "NUMBER", address)
    record = {
        "names": sorted(os.environ),
        "machine": machine(),
        "values": {
            name: _of_value(json.dumps(values[name], sort_keys=True)) if name in values else "absent"
            for name in ("empty", "numbers", "integer")
        },
        "texts": {"integer": _of_value(integer)},
        "placeholders": {name: _of_placeholder(text) for name, text in known.items()},
        "address": address if re.fullmatch("ROOT/[A-Za-z0-9_/-]{1,70}", address) else "another form",
    }
    write(base, "step", record)


def attempt(base: str, name: str, code: str, output: str = "") -> None:
    """Count an execution of a step, and end with an exit code."""
    write(base, f"attempt-{name}-{uuid.uuid4().hex}", 0)
    if output:
        os.makedirs(os.path.dirname(output), exist_ok=True)
        with open(output, "w") as file:
            file.write("done")
    sys.exit(int(code))


def collect(base: str, executor_input: str, region: str) -> None:
    """Put the record together, as the artifact of the last step."""
    given = json.loads(executor_input)
    status = given.get("inputs", {}).get("parameterValues", {}).get("status") or {}
    one, names = read(base, "step"), {"step": read(base, "step").get("names", [])}
    facts: dict[str, str] = {f"parameter.{name}": text for name, text in one.get("values", {}).items()}
    facts |= {f"text.{name}": text for name, text in one.get("texts", {}).items()}
    facts |= {f"placeholder.{name}": text for name, text in one.get("placeholders", {}).items()}
    facts |= {f"step.{name}": text for name, text in one.get("machine", {}).items()}
    facts |= {"artifact.address": one.get("address", ""), **read(base, "optional")}
    for role in ("primary", "worker"):
        seen = read(base, f"replica-{role}")
        names[role] = seen.get("names", [])
        if role == "primary" and seen:
            for group in ("cluster_spec", "tf_config"):
                facts |= {f"{group}.{name}": text for name, text in seen[group].items()}
            facts |= {f"replica.{name}": text for name, text in seen["machine"].items()}
            facts |= {f"metadata.{name}": text for name, text in seen["metadata"].items()}
            facts |= {f"folder.{name}": text for name, text in seen["folders"].items()}
            facts["value.CLOUD_ML_PROJECT_ID"] = seen["project_id"]
    first, ticks = read(base, "end-signal"), found(base, "end-tick-")
    if names["worker"]:
        facts["end.signal"] = "SIGTERM" if first else "none"
    if first:
        seconds = float(ticks[-1].rpartition("-")[2]) - first if ticks else 0.0
        facts["grace.end"] = str(min((0, 5, 10, 20, 30, 60, 120), key=lambda usual: abs(usual - seconds)))
    for code in sorted({name.split("-")[1] for name in found(base, "exit-")}):
        workers, primaries = len(found(base, f"exit-{code}-worker")), len(found(base, f"exit-{code}-primary"))
        once = "ends the replica" if found(base, f"exit-{code}-done") else "ends the job"
        once = "no restart in 4 minutes" if found(base, f"exit-{code}-alone") else once
        again = "restarts the job" if primaries > 1 else "restarts the replica"
        if workers:
            facts[f"exit.{code}"] = again if workers > 1 else once
    has_failed = bool(found(base, "attempt-retried-"))
    for name in ("retried", "condition", "after", "ignoring", "cached") if has_failed else ():
        num_found = len(found(base, f"attempt-{name}-"))
        facts[f"task.{name}"] = f"{num_found} execution{'s' * (num_found != 1)}"
    facts["exit_handler.state"] = re.sub("[^A-Z_]", "", str(status.get("state", "")))[:40]
    facts["exit_handler.fields"] = " ".join(sorted(name for name in status if name.isalpha()))[:80]
    is_here = not base.startswith("gs://") or "LOCALVERTEX_" in " ".join(map(" ".join, names.values()))
    record = {
        "format": "localvertex probe 1",
        "place": "localvertex" if is_here else "Vertex AI",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "region": region if re.fullmatch("[a-z0-9-]{1,40}", region) else "unknown",
        "names": names,
        "facts": {name: text for name, text in facts.items() if text},
    }
    path = given["outputs"]["artifacts"]["probe"]["artifacts"][0]["uri"].replace("gs://", "/gcs/", 1)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(record, file, indent=1)


def main() -> None:
    """Run the mode that the first argument names."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIMIT_SECONDS)
    modes: tuple[Callable[..., None], ...] = (step, optional, replica, exits, attempt, collect)
    next(mode for mode in modes if mode.__name__ == sys.argv[1])(*sys.argv[2:])


if __name__ == "__main__":
    main()
