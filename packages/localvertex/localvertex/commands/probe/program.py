"""Records what the platform does. The steps and replicas of the probe run this text as `python3 -c`.

Standard library only. It records names of variables and classes of values, never a value that it was given: no
address, name of a project or bucket, token or secret. `main` lists the modes; each writes small files under BASE, and
`collect` puts them together. Every process ends itself after 14 minutes, so that the cost has a bound.
"""

import http.client
import json
import os
import re
import resource
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

LIMIT_SECONDS = 840
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
    partial = f"{folder(base)}/.{name}"
    with open(partial, "w") as file:
        json.dump(content, file)
    os.replace(partial, f"{folder(base)}/{name}")


def found(base: str, beginning: str) -> list[str]:
    """Return the files of the record whose names begin so."""
    return [name for name in sorted(os.listdir(folder(base))) if name.startswith(beginning)]


def read(base: str, name: str) -> Any:
    """Return the content of one file of the record, or an empty object."""
    try:
        with open(f"{folder(base)}/{name}") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def wait_for(base: str, beginning: str) -> bool:
    """Wait at most four minutes for a file of another replica, and return whether it is there."""
    for _ in range(960):
        if found(base, beginning):
            return True
        time.sleep(_TICK_SECONDS)
    return False


def metadata(path: str) -> str:
    """Return what the metadata server answers: a state in capitals, or only that it answers, or the status."""
    server = http.client.HTTPConnection(os.environ.get("GCE_METADATA_HOST", "metadata.google.internal"), timeout=5)
    try:
        server.request("GET", f"/computeMetadata/v1/{path}", headers={"Metadata-Flavor": "Google"})
        answer = server.getresponse()
        text = answer.read(200).decode("latin-1")
    except OSError:
        return "no server"
    if answer.status != 200:
        return f"status {answer.status}"
    return text if re.fullmatch("[A-Z_]{1,40}", text) else "answers"


def grouped(group: str, facts: dict[str, str]) -> dict[str, str]:
    """Return facts by their ids."""
    return {f"{group}.{name}": text for name, text in facts.items()}


def machine(kind: str) -> dict[str, str]:
    """Return the facts of the machine that a process sees, without a value of its own."""
    is_unlimited = resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
    facts = {
        "user": "root" if os.getuid() == 0 else "another user",
        "mount": "mounted" if os.path.isdir("/gcs") else "absent",
        "folder": "/" if os.getcwd() == "/" else "another folder",
        "address_space": "unlimited" if is_unlimited else "limited",
        "host_name": "its replica" if "workerpool" in socket.gethostname() else "another name",
    }
    return grouped(kind, facts)


def shape(name: str) -> dict[str, str]:
    """Return the structure of CLUSTER_SPEC or TF_CONFIG, without addresses."""
    if name not in os.environ:
        return {}
    content = json.loads(os.environ[name])
    facts = {
        "fields": " ".join(sorted(content)),
        "cluster": " ".join(f"{pool}:{len(each)}" for pool, each in sorted(content["cluster"].items())),
        "task": " ".join(sorted(content["task"])),
        "environment": "cloud" if content.get("environment") == "cloud" else "another text",
        "job": "JSON text" if isinstance(content.get("job"), str) else "another form",
    }
    return grouped(name.lower(), facts)


def is_primary() -> bool:
    """Return whether this replica is the primary."""
    return "workerpool0" in json.loads(os.environ.get("CLUSTER_SPEC", "{}")).get("task", {}).values()


def replica(base: str) -> None:
    """Record what a replica sees; the primary waits for the worker, which waits for its own end."""
    if is_primary():
        facts = machine("replica") | shape("CLUSTER_SPEC") | shape("TF_CONFIG")
        for path in ("preempted", "maintenance-event", "service-accounts/default/aliases", "zone"):
            facts[f"metadata.instance/{path}"] = metadata(f"instance/{path}")
        facts["metadata.project/project-id"] = metadata("project/project-id")
        folders = {"AIP_MODEL_DIR": "model", "AIP_CHECKPOINT_DIR": "checkpoints", "AIP_TENSORBOARD_LOG_DIR": "logs"}
        for name, usual in folders.items():
            is_usual = os.environ.get(name, "").rstrip("/").endswith(f"/{usual}")
            facts[f"folder.{name}"] = usual if is_usual else "another folder"
        project = os.environ.get("CLOUD_ML_PROJECT_ID", "")
        facts["value.CLOUD_ML_PROJECT_ID"] = "a number" if project.isdigit() else "a name"
        write(base, "record-primary", {"names": sorted(os.environ), "facts": facts})
        wait_for(base, "record-worker")
        return
    signal.signal(signal.SIGTERM, lambda *_: write(base, "end-signal", time.time()))
    write(base, "record-worker", {"names": sorted(os.environ)})
    while True:
        time.sleep(_TICK_SECONDS)
        if found(base, "end-signal"):
            # A new file each time: buckets take one change of an object per second.
            write(base, f"end-tick-{time.time():.2f}", 0)


def exits(base: str, code: str) -> None:
    """End a worker with an exit code at its first start, and count the starts of both replicas."""
    start = "primary" if is_primary() else "worker"
    write(base, f"exit-{code}-{start}-{uuid.uuid4().hex}", 0)
    if start == "primary":
        if not wait_for(base, f"exit-{code}-done"):
            write(base, f"exit-{code}-alone", 0)
        return
    wait_for(base, f"exit-{code}-primary")
    is_done = code == "0" or len(found(base, f"exit-{code}-worker")) > 1
    if is_done:
        write(base, f"exit-{code}-done", 0)
    # Exit handlers of the interpreter do not change the code.
    os._exit(0 if is_done else int(code))


def _of_value(text: str) -> str:
    """Return how a constant arrives, as JSON; nothing else passes."""
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


def parameters(given: Any, *names: str) -> dict[str, str]:
    """Return how parameters arrive in the executor input."""
    values = given.get("inputs", {}).get("parameterValues", {})
    texts = {name: _of_value(json.dumps(text, sort_keys=True)) for name, text in values.items()}
    return {f"parameter.{name}": texts.get(name, "absent") for name in names}


def optional(base: str, executor_input: str, null: str) -> None:
    """Record an optional parameter without a value, in a step of its own, because the platform may refuse it."""
    facts = parameters(json.loads(executor_input), "null") | {"text.null": _of_value(null)}
    write(base, "record-optional", {"facts": facts})


def step(base: str, executor_input: str, integer: str, *placeholders: str) -> None:
    """Record what a step sees: its machine, parameters, placeholders and the address of its artifact."""
    given = json.loads(executor_input)
    known = dict(each.split("=", 1) for each in placeholders)
    address = given["outputs"]["artifacts"]["record"]["artifacts"][0]["uri"]
    address = address.replace(known["pipeline_root"].rstrip("/"), "ROOT").replace(known["pipeline_job_name"], "JOB")
    address = re.sub("[0-9]{5,}", "NUMBER", address)
    facts = machine("step") | parameters(given, "empty", "numbers", "integer") | {"text.integer": _of_value(integer)}
    facts |= grouped("placeholder", {name: _of_placeholder(text) for name, text in known.items()})
    facts["artifact.address"] = address if re.fullmatch("ROOT/[A-Za-z0-9_/-]{1,70}", address) else "another form"
    write(base, "record-step", {"names": sorted(os.environ), "facts": facts})


def attempt(base: str, name: str, code: str) -> None:
    """Count an execution of a step, and end with an exit code."""
    write(base, f"attempt-{name}-{uuid.uuid4().hex}", 0)
    sys.exit(int(code))


def collect(base: str, executor_input: str, region: str) -> None:
    """Put the record together, as the artifact of the last step."""
    given = json.loads(executor_input)
    seen = {name: read(base, f"record-{name}") for name in ("step", "primary", "worker", "optional")}
    names = {role: seen[role].get("names", []) for role in ("step", "primary", "worker")}
    facts: dict[str, str] = {}
    for each in seen.values():
        facts |= each.get("facts", {})
    first, ticks = read(base, "end-signal"), found(base, "end-tick-")
    facts |= {"end.signal": "SIGTERM" if first else "none"} if names["worker"] else {}
    if first and ticks:
        seconds = float(ticks[-1].rpartition("-")[2]) - first
        facts["grace.end"] = str(min((0, 5, 10, 20, 30, 60, 120), key=lambda usual: abs(usual - seconds)))
    for code in {name.split("-")[1] for name in found(base, "exit-") if "-worker-" in name}:
        kinds = ("worker", "primary", "done", "alone")
        workers, primaries, done, alone = (len(found(base, f"exit-{code}-{kind}")) for kind in kinds)
        once = "ends the replica" if done else "no restart in 4 minutes" if alone else "ends the job"
        again = "restarts the job" if primaries > 1 else "restarts the replica"
        facts[f"exit.{code}"] = again if workers > 1 else once
    has_failed = found(base, "attempt-retried-")
    for name in ("retried", "condition", "after", "ignoring", "cached") if has_failed else ():
        facts[f"task.{name}"] = f"executions: {len(found(base, f'attempt-{name}-'))}"
    if status := given.get("inputs", {}).get("parameterValues", {}).get("status"):
        facts["exit_handler.state"] = re.sub("[^A-Z_]", "", str(status.get("state")))[:40] or "another form"
        facts["exit_handler.fields"] = " ".join(sorted(filter(str.isalpha, status)))[:80]
    is_here = not base.startswith("gs://") or "LOCALVERTEX_" in " ".join(map(" ".join, names.values()))
    record = {
        "format": "localvertex probe 1",
        "place": "localvertex" if is_here else "Vertex AI",
        "date": time.strftime("%Y-%m-%d"),
        "region": region if re.fullmatch("[a-z0-9-]{1,40}", region) else "unknown",
        "names": names,
        "facts": facts,
    }
    path = given["outputs"]["artifacts"]["probe"]["artifacts"][0]["uri"].replace("gs://", "/gcs/", 1)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(record, file)


def main() -> None:
    """Run the mode that the first argument names."""
    signal.alarm(LIMIT_SECONDS)
    modes: tuple[Callable[..., None], ...] = (step, optional, replica, exits, attempt, collect)
    next(mode for mode in modes if mode.__name__ == sys.argv[1])(*sys.argv[2:])


if __name__ == "__main__":
    main()
