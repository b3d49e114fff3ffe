"""The commands `probe compile`, `run`, `collect` and `diff`. Nothing here calls a cloud or starts anything in one.

pipeline.json is the template of the pipeline; its steps and replicas run program.py, whose text replaces PROGRAM. The
pipeline fails by design, because what follows a failure is among its facts.
"""

import argparse
import json
import os
import textwrap
from pathlib import Path
from typing import Any

from localvertex import runs
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import outputs, reading
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.temporary import temporary_folder
from localvertex.containers.options import ContainerOptions
from localvertex.errors import RecordNotWritten
from localvertex.probe import record
from localvertex.runner.options import Options
from localvertex.values import facts
from localvertex.values.facts import Fact

_FOLDER = Path(__file__).parent
_TIMEOUT_SECONDS = 6
"""Timeout of the local job whose timeout is recorded; on Vertex AI its machines have to start first."""
_NEXT = """\
An upload starts up to 19 steps and 9 custom jobs on 18 e2-standard-4, at most
10 of these at once.
Upper bound: 555 machine-minutes (37 x 15), without time in queues.
Nothing was started. Run it on Vertex AI, and download the artifact `probe` of
its step `collect`. Then:
  python -m localvertex probe collect probe"""
_VERDICTS = ("same", "known", "DIFFERS", "no value", "not probed")


def execute(options: argparse.Namespace) -> int:
    """Run a command of the probe.

    Raises:
        UserError: Its output exists, or its input is not a record.
    """
    if getattr(options, "yes", "output" in options):
        name = reading.display(options.output)
        if os.path.lexists(options.output):
            raise UserError(f"{name} exists and was not changed; choose another --output")
        if not options.output.parent.is_dir():
            raise UserError(f"{name} is in a folder that does not exist; create it or choose another --output")
    commands = {"compile": _compile, "run": _run, "collect": _collect, "diff": _diff}
    return commands[options.action](options)


def compiled() -> JsonObject:
    """Return the pipeline with the recording program in it."""
    program, template = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("program.py", "pipeline.json"))
    pipeline: JsonObject = json.loads(template.replace('"PROGRAM"', json.dumps(program)))
    return pipeline


def _compile(options: argparse.Namespace) -> int:
    """Write the pipeline, and print what an upload of it would start, at most."""
    _write(options.output, compiled())
    print(_NEXT)
    return 0


def _run(options: argparse.Namespace) -> int:
    """Run the pipeline here and write its record.

    Raises:
        RecordNotWritten: It wrote none.
    """
    print("running the probe on this machine, which takes about half a minute", flush=True)
    with temporary_folder() as name:
        work_dir, file = Path(name, "runs"), Path(name, "probe.json")
        file.write_text(json.dumps(compiled()).replace('"300s"', f'"{_TIMEOUT_SECONDS}s"'))
        # The pipeline is the probe's own, so it needs no sandbox, which not every machine has.
        containers = ContainerOptions(allow_host_commands=True)
        ran = runs.run(file, options=Options(work_dir=work_dir, run_id="probe", containers=containers))
        path = work_dir / "probe" / "collect" / "probe"
        if not path.is_file():
            raise RecordNotWritten(f"the probe wrote no record: {ran['error']}")
        found = record.without_own_variables(record.read(path))
    _write(options.output, found.content)
    values, table = found.values, facts.facts()
    wrong = [name for name in record.recorded() if values.get(name) != table[name].here != facts.OF_THIS_MACHINE]
    for name in wrong:
        print(f"{name}: {values.get(name, 'not recorded')}, where the table has {table[name].here}")
    return 1 if wrong else 0


def _collect(options: argparse.Namespace) -> int:
    """Show what a downloaded record contains, and write it with `--yes`."""
    found = record.read(options.record)
    print(json.dumps(found.content, indent=1))
    if options.yes:
        _write(options.output, found.content)
    else:
        print(f"This is everything that {options.output} would contain; to write it, add --yes.")
    return 0


def _diff(options: argparse.Namespace) -> int:
    """Show each fact here, on Vertex AI and in the documentation; return 1 when one differs without a known reason."""
    found = record.read(options.record)
    if found.content["place"] != record.ON_VERTEX:
        raise UserError(f"{options.record} was recorded by localvertex; expected a record of a run on Vertex AI")
    values, table, counts = found.values, facts.facts().values(), dict.fromkeys(_VERDICTS, 0)
    print(f"Recorded on Vertex AI on {found.content['date']} in {found.content['region']}")
    for source in sorted({fact.source for fact in table}):
        print(f"\n{source or 'Not documented'}")
        for fact in table:
            if fact.source == source:
                verdict = _verdict(fact, values)
                counts[verdict] += 1
                theirs = f"not recorded: {fact.unrecorded}" if fact.unrecorded else "not recorded"
                text = f"{fact.id}: here {fact.here}; Vertex AI {values.get(fact.id, theirs)}"
                text += f"; documented {fact.documented}" if fact.documented else ""
                text += f" ({fact.why})" if fact.why else ""
                print(textwrap.fill(text, 80, initial_indent=f"  {verdict:11}", subsequent_indent=" " * 13))
    if found.others:
        print("\nVariables on Vertex AI that the table lacks, including those of the image:")
        print(textwrap.fill(" ".join(found.others), 80, initial_indent="  ", subsequent_indent="  "))
    print("\n" + ", ".join(f"{number} {verdict}" for verdict, number in counts.items()))
    return 1 if counts["DIFFERS"] else 0


def _verdict(fact: Fact, values: dict[str, str]) -> str:
    """Compare a fact."""
    if fact.id not in values:
        return "not probed" if fact.unrecorded else "no value"
    if values[fact.id] == fact.here:
        return "same"
    return "known" if fact.why else "DIFFERS"


def _write(path: Path, content: Any) -> None:
    """Write a file as JSON.

    Raises:
        UserError: It cannot be written.
    """
    try:
        outputs.write({path: (json.dumps(content, indent=1) + "\n").encode()})
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}; choose another --output") from None
    print(f"wrote {path}")
