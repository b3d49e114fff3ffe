"""The way on after a refusal: tables of localvertex.toml that let the pipeline run, with examples to replace.

A table that the file has already is proposed with its content, so that it can be pasted in its place. A step is given
where the file has what would help it already, so that nothing is proposed twice.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from localvertex._base.compiled.spec import Container, Importer, Pipeline
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json, read_bytes
from localvertex.containers.stand_ins import EXAMPLE, StandIns, advice
from localvertex.errors import Refusal
from localvertex.executors.custom_job import JOB_FILE
from localvertex.executors.python_step import PythonStepExecutor, missing_module
from localvertex.runner.checks.addresses import BUCKETS
from localvertex.runner.checks.base_images import of_step
from localvertex.runner.checks.bigquery import calls
from localvertex.runner.checks.given_outputs import NamedTask, asks_google, named_tasks
from localvertex.store.executor_files import refused_calls
from localvertex.store.steps.failure import cannot_run_here
from localvertex.store.task import State
from localvertex.values.buckets import addresses
from localvertex.values.configuration import Configuration, key, toml
from localvertex.values.repository import Repository

_STORAGE = "storage.googleapis.com"

Tables = dict[tuple[str, ...], JsonObject]
"""Tables of a localvertex.toml by their names."""

_PARSES = re.compile(r"[\"'/(]gs://[\"')\\]|gs://[\[(]|google\.cloud(?:\.| import )storage\b|\bgcsfs\b")
"""Code that has `gs://` as a text or a pattern of its own, or calls Cloud Storage."""

_POOL = re.compile(r"workerpool(\d+)-\d+$")

_OF_IMAGES = {"python": ".venv/bin/python", "command": ["python", "-m", "program"]}
"""Other settings that a user may want for an image whose source is proposed."""


def proposed(pipeline: Pipeline, reasons: Iterable[str], configuration: Configuration) -> Tables:
    """Return the tables that let a pipeline run; none if no table would help.

    Args:
        pipeline: The pipeline.
        reasons: Why it is refused; those that are a `Refusal` have a way on.
        configuration: What the file has; tables per pipeline, if it has any.
    """
    found = [each for each in reasons if isinstance(each, Refusal)]
    own = _own(pipeline, configuration)
    wanted = [
        (each, (*own, *each.table) if each.table[0] in ("parameters", "step") else each.table)
        for each in found
        if each.table
    ]
    helped = {(each.step, table) for each, table in wanted if _adds(each.content, table, configuration)}
    steps = {each.step for each in found if not each.table}
    steps |= {each.step for each, table in wanted if each.step and (each.step, table) not in helped}
    given = {name for task in named_tasks(pipeline) if (names := _names(task, pipeline)) & steps for name in names}
    tables: Tables = {}
    for task in named_tasks(pipeline):
        if _names(task, pipeline) & steps:
            tables[*own, "step", task.path] = {"outputs": task.proposed}
    # A folder that is known comes before the example of one.
    for each, table in sorted(wanted, key=lambda pair: pair[0].content.get("path") == EXAMPLE):
        if each.step not in given:
            have = tables.get(table) or _existing(table, configuration)
            tables[table] = merged(have, each.content)
    return tables


def after(
    pipeline: Pipeline,
    entries: Iterable[JsonObject],
    repository: Repository,
    stand_ins: StandIns,
    configuration: Configuration,
    *,
    values: Mapping[str, Any],
    run_dir: Path,
    has_buckets: bool = False,
) -> Tables:
    """Return the tables without which steps of a run have failed: of their image, their addresses, or their outputs.

    A step that calls BigQuery is not the only one.

    Args:
        pipeline: The pipeline, without what was given.
        entries: The entries of the run's tasks in its record.
        repository: Names the packages of modules.
        stand_ins: What ran in place of images.
        configuration: What the file has.
        values: The values of the pipeline's parameters.
        run_dir: The folder of the run.
        has_buckets: Whether buckets were folders.
    """
    # Without the numbers of iterations.
    found = {"/".join(part for part in each["path"].split("/") if not part.isdecimal()): each for each in entries}
    failed = {path: each for path, each in found.items() if each["state"] == State.FAILED and cannot_run_here(each)}
    own = _own(pipeline, configuration)
    callers = {each.step: each for each in calls(pipeline, values, has_credentials=False)}
    reasons, open_calls, has_failed_call = list[Refusal](), list[Refusal](), False
    lacking = dict[tuple[str, str], Refusal]()
    for task in named_tasks(pipeline):
        entry, known = found.get(task.path, {}), _existing((*own, "step", task.path), configuration)
        is_failed, table = entry.get("state") == State.FAILED, ("step", task.path)
        refused = refused_calls((run_dir / entry["log"]).parent) if is_failed and entry["log"] else []
        rows = {each["rows"]: "path/to/file" for each in refused if each["rows"]}
        is_open = bool(entry) and not State(entry["state"]).has_outputs
        is_caller = is_open and task.path in callers and "bigquery" not in known
        has_failed_call |= bool(rows) or (is_caller and task.path in failed)
        if rows:
            others = callers[task.path].content.get("bigquery", {}) if is_caller else {}
            reasons.append(Refusal(task.path, step=task.path, table=table, content={"bigquery": others | rows}))
            continue
        if is_caller and not is_failed:
            open_calls.append(callers[task.path])
        module = missing_module(entry["error"] or "") if task.path in failed else ""
        if not module and not has_buckets and _STORAGE in (each["host"] for each in refused):
            reasons.append(Refusal(task.path, step=task.path, table=("buckets",), content=BUCKETS))
        elif not module and is_open and has_buckets and "addresses" not in known and _parses(task, pipeline, entry):
            reasons.append(Refusal(task.path, step=task.path, table=table, content={"addresses": "gs"}))
        elif task.path in failed:
            image = _image(pipeline.executor_of(task.spec), entry, run_dir)
            way_on = advice(image, module, repository) if module else Refusal("")
            lacking[image, module] = way_on
            reasons.append(Refusal(task.path, step=task.path, table=way_on.table, content=way_on.content))
    for task in named_tasks(pipeline):
        executor = pipeline.executor_of(task.spec)
        is_open = found.get(task.path, {}).get("state") == State.NOT_TRIGGERED
        if is_open and isinstance(executor, Container) and PythonStepExecutor().accepts(executor):
            # It would fail for the same module.
            modules = of_step(executor.command, stand_ins.of(executor.image, executor.command), repository)
            reasons += [
                Refusal(task.path, step=task.path, table=way_on.table, content=way_on.content)
                for (image, module), way_on in lacking.items()
                if image == executor.image and module.partition(".")[0] in modules
            ]
    return proposed(pipeline, [*reasons, *(open_calls if has_failed_call else [])], configuration)


def _own(pipeline: Pipeline, configuration: Configuration) -> tuple[str, ...]:
    return ("pipeline", pipeline.name) if configuration.pipeline else ()


def _image(executor: Container | Importer | None, entry: JsonObject, run_dir: Path) -> str:
    """Return the image of a step's program, in a custom job the failed replica's; empty if not known."""
    if not isinstance(executor, Container) or not (job := entry.get("custom_job")):
        return executor.image if isinstance(executor, Container) else ""
    number = _POOL.search(job["failed_replica"])
    try:
        content = parse_json(read_bytes((run_dir / entry["log"]).with_name(JOB_FILE)).decode(), JOB_FILE)
        return str(
            content["job_spec"]["worker_pool_specs"][int(number[1] if number else 0)]["container_spec"]["image_uri"]
        )
    except (UserError, ValueError, LookupError, TypeError):
        return ""


def _parses(task: NamedTask, pipeline: Pipeline, entry: Mapping[str, Any]) -> bool:
    """Return whether a step may have failed because it got a path for gs://, which its code takes apart."""
    executor, inputs = pipeline.executor_of(task.spec), entry["inputs"]["parameters"]
    code = json.dumps([executor.command, inputs]) if isinstance(executor, Container) else ""
    is_asked = any(addresses(inputs)) and _PARSES.search(code) is not None
    return entry["state"] == State.FAILED and is_asked and not asks_google(code)


def text_of(tables: Tables, configuration: Configuration) -> str:
    """Return tables as lines of the file; parameters first, buckets last."""
    order = ("parameters", "pipeline", "step", "image", "packages", "buckets")
    blocks = []
    for names, content in sorted(tables.items(), key=lambda each: order.index(each[0][0])):
        lines = [
            heading(names) + "  # replaces the one there" * bool(_existing(names, configuration)),
            *(f"{key(name)} = {toml(each)}" for name, each in content.items()),
        ]
        if names[0] == "image" and "path" in content:
            lines += [f"# {name} = {toml(each)}" for name, each in _OF_IMAGES.items() if name not in content]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def heading(names: tuple[str, ...]) -> str:
    """Return the line that begins a table."""
    return f"[{'.'.join(map(key, names))}]"


def _names(task: NamedTask, pipeline: Pipeline) -> set[str]:
    """Return what a refusal may name a task by."""
    executor = pipeline.executor_of(task.spec)
    return {task.path, task.spec.path, task.component.executor, executor.path if executor else ""} - {""}


def _adds(content: JsonObject, table: tuple[str, ...], configuration: Configuration) -> bool:
    """Return whether the file lacks a part of the content that would help."""
    have = _existing(table, configuration)
    return merged(have, content) != have


def _existing(names: tuple[str, ...], configuration: Configuration) -> JsonObject:
    """Return a table of the file, without the tables in it and with its paths as a user writes them."""
    table: Any = vars(configuration)
    for name in names:
        table = table.get(name, {})
    is_flat = names[-1] == "parameters" or names[-2:-1] == ("step",)
    plain = {name: each for name, each in table.items() if not isinstance(each, Mapping) or is_flat}
    if "parameters" in names:
        return plain
    folder = json.dumps(str(configuration.folder))[1:-1]
    text = json.dumps(plain).replace(f'"{folder}"', '"."')
    content: JsonObject = json.loads(text.replace(f'"{folder}/', '"'))
    return content


def merged(have: Mapping[str, Any], added: Mapping[str, Any]) -> JsonObject:
    """Return a table with additions, in its lists and tables as well; its own content stays."""
    tables = {
        name: {**each, **have[name]}
        for name, each in added.items()
        if isinstance(each, Mapping) and isinstance(have.get(name), Mapping)
    }
    lists = {
        name: [*dict.fromkeys([*have[name], *each])]
        for name, each in added.items()
        if isinstance(each, list) and name in have and name != "command"
    }
    return {**added, **have, **lists, **tables}
