"""Records what the platform does. The steps and replicas of the probe run this text as `python3 -c`.

Standard library only. It records names of variables and classes of values, never a value that it was given: no
address, name of a project or bucket, token or secret. `main` lists the modes; each writes small files under BASE, and
`collect` puts them together. Every process ends itself after 14 minutes, so that the cost has a bound.

Exit codes are set with `os._exit`: the first process of a container ignores signals without a handler, even its own.
"""

import http.client
import itertools
import json
import os
import re
import resource
import shutil
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

LIMIT_SECONDS = 840
_TICK_SECONDS = 0.25
_RESTART_SECONDS = 500
"""A job that ends this early certainly did not reach its timeout."""

_HARMLESS = frozenset(
    "cluster environment task job type index trial cloud open_ports workerpool0 workerpool1 workerpool2 workerpool3 "
    "chief master worker ps evaluator state error pipelineJobResourceName pipelineTaskName SUCCEEDED FAILED CANCELLED "
    "TRUE FALSE NONE MIGRATE_ON_HOST_MAINTENANCE TERMINATE_ON_HOST_MAINTENANCE NUMBER exit-handler-1 step record "
    "step_NUMBER step_-NUMBER".split()
)
"""The only words of the platform that are recorded."""


def word(text: Any) -> str:
    """Return a harmless word, and "another" for any other."""
    return text if text in _HARMLESS else "another"


def words(texts: Any) -> str:
    """Return harmless words, sorted."""
    return " ".join(sorted({word(each) for each in texts}))


def variables() -> list[str]:
    """Return the names of the environment's variables, as far as they are plain ones."""
    return sorted(name for name in os.environ if re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,79}", name))


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


def wait_for(base: str, beginning: str) -> list[str]:
    """Wait at most four minutes for files of another replica, and return them."""
    for _ in range(960):
        if files := found(base, beginning):
            return files
        time.sleep(_TICK_SECONDS)
    return []


def metadata(path: str) -> str:
    """Return what the metadata server answers: a known state, or only that it answers, or the status."""
    try:
        server = http.client.HTTPConnection(os.environ.get("GCE_METADATA_HOST", "metadata.google.internal"), timeout=5)
        server.request("GET", f"/computeMetadata/v1/{path}", headers={"Metadata-Flavor": "Google"})
        answer = server.getresponse()
        text = answer.read(200).decode("latin-1")
    except (OSError, http.client.HTTPException):
        return "no server"
    if answer.status != 200:
        return f"status {answer.status}"
    return text if text in _HARMLESS else "answers"


def grouped(group: str, facts: dict[str, str]) -> dict[str, str]:
    """Return facts by their ids."""
    return {f"{group}.{name}": text for name, text in facts.items()}


def machine(kind: str) -> dict[str, str]:
    """Return the facts of the machine that a process sees, without a value of its own."""
    kinds = (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)
    limits = (str(resource.getrlimit(kind)[0]).replace("-1", "unlimited") for kind in kinds)
    facts = dict(zip(("address_space", "open_files", "processes"), limits, strict=True)) | {
        "user": "root" if os.getuid() == 0 else "another user",
        "mount": "mounted" if os.path.isdir("/gcs") else "absent",
        "folder": "/" if os.getcwd() == "/" else "another folder",
        "cpus": str(len(os.sched_getaffinity(0))),
        "memory": str(read("/sys/fs/cgroup", "memory.max") or "no number"),
        "shared_memory": f"{shutil.disk_usage('/dev/shm').total >> 20} MiB",  # noqa: S108 - only its size
        "process": "first" if os.getpid() == 1 else "another",
        "host_name": "its replica" if "workerpool" in socket.gethostname() else "another name",
    }
    return grouped(kind, facts)


def shape(name: str) -> dict[str, str]:
    """Return the structure of CLUSTER_SPEC or TF_CONFIG, without addresses."""
    if name not in os.environ:
        return {}
    content = json.loads(os.environ[name])
    facts = {
        "fields": words(content),
        "cluster": " ".join(f"{word(pool)}:{len(each)}" for pool, each in sorted(content["cluster"].items())),
        "task": words(content["task"]),
        "environment": word(str(content.get("environment"))),
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
        write(base, "record-primary", {"names": variables(), "facts": facts})
        wait_for(base, "record-worker")
        return
    # The primary ends as soon as it finds this record.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    write(base, "record-worker", {"names": variables()})
    _until_killed(base, "end")


def _until_killed(base: str, name: str) -> None:
    """Record a SIGTERM, and how long the process lives after it."""
    # Without a handler, which a second signal could interrupt while it writes.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    while not signal.sigtimedwait({signal.SIGTERM}, _TICK_SECONDS):
        pass
    first = time.monotonic()
    while True:
        # A new file each time: buckets take one change of an object per second.
        write(base, f"{name}-tick-{time.monotonic() - first:06.2f}", 0)
        time.sleep(_TICK_SECONDS)


def exits(base: str, *codes: str) -> None:
    """End the worker with one exit code after another; the primary notes that it sees a start, and in which life."""
    name, life = f"exit-{codes[0]}", uuid.uuid4().hex
    start = len(found(base, f"{name}-start-"))
    if not is_primary():
        write(base, f"{name}-start-{start}", 0)
        seen = wait_for(base, f"{name}-seen-{start}-")
        code = (*codes, "")[start]
        write(base, f"{name}-end-{start}", [code, time.time(), "".join(seen)[-32:]])
        os._exit(int(code or 0))
    for each in range(max(0, start - 1), len(codes) + 1):
        if not wait_for(base, f"{name}-start-{each}"):
            write(base, f"{name}-alone", 0)
            return
        write(base, f"{name}-seen-{each}-{life}", 0)
        if codes[0] == "0":
            _until_killed(base, "timeout")
        # The end of the primary ends the job, and with it a worker that has not noted this yet.
        wait_for(base, f"{name}-end-{each}")


def consequences(base: str, name: str) -> dict[str, str]:
    """Return what followed the exit codes of a job, and how often it was restarted if it has a code several times."""
    codes, times, lives = zip(*(read(base, file) for file in found(base, f"exit-{name}-end-")), strict=True)
    texts = [a and b and f"restarts the {'replica' if a == b else 'job'}" for a, b in itertools.pairwise(lives)]
    if name == "0":
        texts.append(found(base, "timeout-tick") and "ends the replica")
    elif found(base, f"exit-{name}-alone"):
        texts.append("no restart in 4 minutes")
    else:
        texts.append(times[-1] - times[0] < _RESTART_SECONDS and "ends the job")
    # The first consequence of a code counts.
    facts = {f"exit.{code}": text for code, text in reversed([*zip(codes, texts, strict=True)]) if code and text}
    num_restarts = texts.count(texts[0])
    if texts[0] and num_restarts > 1 and texts[num_restarts]:
        more = " or more" * (num_restarts == codes.count(name))
        facts[f"restarts.{texts[0].split()[-1]}"] = f"{num_restarts}{more}"
    return facts


def ending(base: str, name: str) -> dict[str, str]:
    """Return the signal at the end of a process, and its grace time."""
    ticks = found(base, f"{name}-tick-")
    if not ticks:
        return {f"{name}.signal": "none"}
    grace = min((0, 5, 10, 20, 30, 60, 120), key=lambda usual: abs(usual - float(ticks[-1][-6:])))
    return {f"{name}.signal": "SIGTERM", f"grace.{name}": str(grace)}


def _of_value(text: str) -> str:
    """Return how a constant arrives, as JSON; nothing else passes."""
    constants = r"""null|None|""|"?3(\.0+)?"?|\{"half": "?0?\.50*"?, "whole": "?1(\.0+)?"?\}"""
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
    root, _, path = address.partition(known["pipeline_root"].rstrip("/") + "/")
    job = known["pipeline_job_name"]
    parts = ["JOB" if part == job else word(re.sub("[0-9]{5,}", "NUMBER", part)) for part in path.split("/")]
    facts = machine("step") | parameters(given, "empty", "numbers", "integer") | {"text.integer": _of_value(integer)}
    facts |= grouped("placeholder", {name: _of_placeholder(text) for name, text in known.items()})
    facts["artifact.address"] = "another form" if root else "/".join(["ROOT", *parts[:8]])
    write(base, "record-step", {"names": variables(), "facts": facts})


def attempt(base: str, name: str, code: str) -> None:
    """Count an execution of a step, and end with an exit code."""
    write(base, f"attempt-{name}-{uuid.uuid4().hex}", 0)
    sys.exit(int(code))


def collect(base: str, executor_input: str, region: str) -> None:
    """Put the record together, as the artifact of the last step."""
    given = json.loads(executor_input)
    seen = {name: read(base, f"record-{name}") for name in ("step", "primary", "worker", "optional")}
    names = {role: seen[role].get("names", []) for role in ("step", "primary", "worker")}
    facts = {name: text for each in seen.values() for name, text in each.get("facts", {}).items()}
    facts |= ending(base, "end") if names["worker"] else {}
    facts |= ending(base, "timeout") if found(base, "exit-0-seen-") else {}
    for name in {file.split("-")[1] for file in found(base, "exit-") if "-end-" in file}:
        facts |= consequences(base, name)
    has_failed = found(base, "attempt-retried-")
    for name in ("retried", "condition", "after", "ignoring", "cached") if has_failed else ():
        facts[f"task.{name}"] = f"executions: {len(found(base, f'attempt-{name}-'))}"
    if status := given.get("inputs", {}).get("parameterValues", {}).get("status"):
        facts |= {"exit_handler.state": word(str(status.get("state"))), "exit_handler.fields": words(status)}
    is_here = not base.startswith("gs://") or "LOCALVERTEX_" in " ".join(map(" ".join, names.values()))
    record = {
        "format": "localvertex probe 1",
        "place": "localvertex" if is_here else "Vertex AI",
        "date": time.strftime("%Y-%m-%d"),
        "region": region if re.fullmatch("[a-z]{2,12}-[a-z]{4,12}[0-9]{1,2}", region) else "unknown",
        "names": names,
        "facts": facts,
    }
    write(*os.path.split(given["outputs"]["artifacts"]["probe"]["artifacts"][0]["uri"]), record)


def main() -> None:
    """Run the mode that the first argument names."""
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, lambda number, _: os._exit(128 + number))
    signal.alarm(LIMIT_SECONDS)
    modes: tuple[Callable[..., None], ...] = (step, optional, replica, exits, attempt, collect)
    next(mode for mode in modes if mode.__name__ == sys.argv[1])(*sys.argv[2:])


if __name__ == "__main__":
    main()
