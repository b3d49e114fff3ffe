"""The command line of `python -m localvertex`."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # The current folder, whose files are the user's. They must not replace a module.
    del sys.path[0]

import argparse
from pathlib import Path
from typing import Any

from localvertex._base.userinput import cli
from localvertex._base.userinput.errors import UserError
from localvertex.errors import RecordNotWritten
from localvertex.values import facts

_DESCRIPTION = """\
Run a compiled Kubeflow pipeline, the file that you upload to Vertex AI, on this
machine. Python steps become processes, custom jobs become local jobs, and model
uploads go to a local registry.
"""

_EXAMPLES = """\
examples:
  python -m localvertex init
  python -m localvertex run build/image_training.json --parameter epochs=3
  python -m localvertex run --resume latest
  python -m localvertex prove -- python train.py
  python -m localvertex machines check build/image_training.json
  python -m localvertex list
  python -m localvertex show latest
  python -m localvertex logs latest train
  python -m localvertex probe compile
  python -m localvertex serve --port 8700
  python -m localvertex console

exit codes: 0 success, 1 the run failed, 2 invalid input,
130 stopped by Ctrl-C, 143 stopped by SIGTERM
"""

_MORE_ON_INIT = """
Nothing of the repository is imported or run, and no file is overwritten.

exit codes: 0 both files were written, 1 a file exists and was not changed, or
there are no pipelines, 2 invalid input"""

_ANSWERS: dict[str, dict[str, Any]] = {
    "init": {"pipelines": [], "files": []},
    "list": {"runs": []},
    "prove": {"proofs": [], "page": None, "reasons": [], "proposal": ""},
    "run": {"run": None, "reasons": [], "proposal": "", "resume": None},
}
"""What each command answers with `--json`, before it has run (docs/json.md)."""

_CONTAINERS = "container commands (docs/containers.md)"
_FAULTS = "fault injection in custom jobs (docs/faults.md)"
"""Headings that `run` and `serve` share."""


def _parser() -> cli.Parser:
    """Build the parser of all commands."""
    top = cli.Parser("localvertex", description=_DESCRIPTION, epilog=_EXAMPLES)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_init(commands)
    _add_run(commands)
    _add_probe(commands)
    _add_prove(commands)
    _add_serve(commands)
    _add_console(commands)
    _added(commands, "machines", "check machines, list them, and convert jobs of AI Platform Training")
    about = {
        "list": "list the runs of the work folder",
        "show": "show one run: steps, metrics, models, error",
        "logs": "print the log of one step, or of all steps",
        "clean": "remove finished runs; keep models, checkpoints, caches and all files in use",
    }
    for name, text in about.items():
        command = _added(commands, name, text)
        _add_work_dir(command)
        if name in ("show", "logs"):
            command.add_argument("run", metavar="RUN", help="run id, a unique prefix of it, or 'latest'")
        if name == "logs":
            command.add_argument("task", metavar="STEP", nargs="?", help="step name or path, or a unique part of it")
            command.add_argument("--follow", "-f", action="store_true", help="also print new lines until the run ends")
        if name == "clean":
            command.add_argument("runs", metavar="RUN", nargs="*", help="runs to remove (default: all finished runs)")
            command.add_argument(
                "--dry-run", action="store_true", help="print what would be removed, and remove nothing"
            )
            command.add_argument("--yes", "-y", action="store_true", help="remove without asking")
    for name in _ANSWERS:
        form: dict[str, Any] = {"action": "store_true"}
        if name == "prove":
            form = {"metavar": "F", "type": Path, "nargs": "?", "const": True, "help": "results to this file, or "}
        shown = f"{form.pop('help', '')}one JSON object to stdout, all else to stderr (docs/json.md)"
        commands.choices[name].add_argument("--json", **form, help=shown)
    return top


def _add_init(commands: "argparse._SubParsersAction[cli.Parser]") -> None:
    text = "list pipelines; write localvertex.toml and a test"
    init = _added(commands, "init", f"{text} (docs/your-own-repository.md)", _MORE_ON_INIT)
    init.add_argument("folder", metavar="FOLDER", type=cli.folder, nargs="?", default=Path(), help="the repository (.)")


def _add_probe(commands: "argparse._SubParsersAction[cli.Parser]") -> None:
    probe = _added(
        commands,
        "probe",
        "compare Vertex AI with this machine; starts nothing there (docs/fidelity.md)",
    )
    probe.set_defaults(file="the probe", resume=None)
    actions = probe.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, about, output in (
        ("compile", "write the pipeline to upload, and print the upper bound of its cost", "localvertex-probe.json"),
        ("run", "run it on this machine; exit code 1 if a fact differs from the table", "HERE.json"),
        ("collect", "show a record downloaded from Vertex AI; --yes also writes it", "THEIRS.json"),
        ("diff", "compare here, Vertex AI and documentation; exit code 1 if a fact differs", ""),
    ):
        action = _added(actions, name, about)
        if name in ("collect", "diff"):
            action.add_argument("record", metavar="RECORD", type=Path, help="the record as JSON")
        if output:
            action.add_argument(
                "--output", metavar="FILE", type=Path, default=Path(output), help="file to write (./%(default)s)"
            )
        if name == "collect":
            action.add_argument("--yes", "-y", action="store_true", help="write it")


def _add_run(commands: "argparse._SubParsersAction[cli.Parser]") -> None:
    run = _added(commands, "run", "run a compiled pipeline")
    run.add_argument("file", metavar="FILE", type=Path, nargs="?", help="compiled pipeline, .json or .yaml")
    run.add_argument(
        "--resume", metavar="RUN", help="resume an earlier run instead of running FILE; finished steps are not repeated"
    )
    values = run.add_argument_group("pipeline parameters")
    values.add_argument(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set a parameter: strings as they are or from a file by @FILE (@@ for a leading @), other types as JSON;"
        " repeatable",
    )
    values.add_argument(
        "--parameter-file",
        metavar="F",
        type=Path,
        help="JSON or YAML file of parameters; --parameter overrides it",
    )
    values.add_argument(
        "--input-artifact",
        metavar="NAME=URI",
        action="append",
        default=[],
        help="local file or folder for an input artifact of the pipeline; repeatable",
    )
    values.add_argument(
        "--project", metavar="P", default="local-project", help="project id for placeholders (%(default)s)"
    )
    values.add_argument("--region", metavar="R", default="us-central1", help="region for placeholders (%(default)s)")
    _add_execution(run.add_argument_group("execution"))
    _add_containers(run.add_argument_group(_CONTAINERS))
    _add_credentials(run.add_argument_group("Google Cloud (docs/localvertex.md)"))
    _add_custom_jobs(run.add_argument_group(_FAULTS))


def _add_prove(commands: "argparse._SubParsersAction[cli.Parser]") -> None:
    prove = _added(commands, "prove", "check that a killed training resumes exactly (docs/prove.md)")
    prove.add_argument(
        "words",
        metavar="FILE | -- COMMAND",
        nargs="+",
        help="compiled pipeline or CustomJob (.json, .yaml), or a command; {checkpoints} becomes its folder",
    )
    prove.set_defaults(file="the pipeline", resume="")
    prove.add_argument("--step", metavar="NAME", default="", help="prove only the job of this step of the pipeline")
    prove.add_argument(
        "--seed", metavar="N", type=int, default=0, help="seed of the moments of the faults (%(default)s)"
    )
    prove.add_argument(
        "--fault", metavar="NAME", action="append", default=[], help="only this fault (default: all); repeatable"
    )
    prove.add_argument(
        "--number",
        metavar="PATTERN",
        action="append",
        default=[],
        help="part of a log line, such as 'loss is {loss} after {step} steps' (default: any NAME=NUMBER); repeatable",
    )
    prove.add_argument(
        "--reproducer", metavar="DIR", type=Path, help="also write each bad run, for the maintainer of the program"
    )
    prove.add_argument(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set a parameter of the pipeline; repeatable",
    )
    prove.add_argument("--parameter-file", metavar="F", type=Path, help="JSON or YAML file of parameters")
    _add_work_dir(prove)
    _add_config(prove)
    _add_gcs_root(prove)
    _add_containers(prove.add_argument_group(_CONTAINERS))


def _add_execution(group: "argparse._ArgumentGroup") -> None:
    """Add the options of `run` that do not change what the pipeline computes."""
    _add_work_dir(group)
    _add_config(group)
    group.add_argument("--run-id", metavar="ID", help="name of the run (default: pipeline name and time)")
    group.add_argument("--no-cache", action="store_true", help="run every step, even if its result is cached")
    group.add_argument(
        "--max-parallel",
        metavar="N",
        type=int,
        help="maximum number of steps to run in parallel (default: number of cores, at least 2)",
    )
    group.add_argument("--fail-fast", action="store_true", help="start no steps after a failure, except exit tasks")
    group.add_argument(
        "--max-backoff",
        metavar="SECONDS",
        type=float,
        default=10.0,
        help="maximum wait before a retry, even if the pipeline asks for more (%(default)s)",
    )
    group.add_argument(
        "--grace",
        metavar="SECONDS",
        type=float,
        default=facts.number("grace.end"),
        help="time between SIGTERM and SIGKILL when the run is stopped (%(default)s)",
    )


def _add_containers(group: "argparse._ArgumentGroup") -> None:
    """Add the options of `run` and `serve` for commands that need a container image."""
    group.add_argument(
        "--image",
        metavar="IMAGE=COMMAND",
        action="append",
        default=[],
        help="command prefix to use instead of this container image when its program is not installed locally; "
        "repeatable",
    )
    group.add_argument(
        "--engine",
        choices=["docker", "podman"],
        default="",
        help="run container commands in their own images (default: in a bubblewrap sandbox on this machine)",
    )
    group.add_argument(
        "--allow-network", action="store_true", help="let container commands use the network, not only loopback"
    )
    group.add_argument(
        "--allow-host-commands",
        action="store_true",
        help="run container commands on this machine as you, without a sandbox",
    )


def _add_credentials(group: "argparse._ArgumentGroup") -> None:
    """Add the options of `run` that let a run work in Google Cloud."""
    group.add_argument(
        "--with-credentials",
        action="store_true",
        help="let steps and custom jobs use your Google Cloud credentials and other secrets of your environment",
    )
    _add_gcs_root(group)


def _add_gcs_root(command: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the option for buckets that are folders."""
    command.add_argument(
        "--gcs-root",
        metavar="DIR",
        type=cli.folder,
        help="use local files DIR/BUCKET/OBJECT in place of gs://BUCKET/OBJECT",
    )
    command.add_argument("--create-buckets", action="store_true", help="create missing folders of buckets, and DIR")


def _add_custom_jobs(jobs: "argparse._ArgumentGroup") -> None:
    """Add the options of `run` and `serve` for custom jobs."""
    jobs.add_argument(
        "--fault",
        metavar="FAULT",
        action="append",
        default=[],
        help="a fault and its time, for example 'SIGKILL workerpool1-0 at step 30', "
        "'SIGTERM workerpool0-0 at 20s grace 30s' or 'preempt all every 45s', or a shortage, for example "
        "'stockout SPOT for 20s'; repeatable",
    )


def _add_serve(commands: "argparse._SubParsersAction[cli.Parser]") -> None:
    serve = _added(commands, "serve", "serve the Vertex AI API on 127.0.0.1 and run submitted jobs (docs/serve.md)")
    serve.add_argument(
        "--port", metavar="P", type=int, default=8700, help="port to listen on, 0 for any free port (%(default)s)"
    )
    _add_server(serve)


def _add_console(commands: "argparse._SubParsersAction[cli.Parser]") -> None:
    console = _added(
        commands,
        "console",
        "open the console; starts a server if none is running (docs/console.md)",
    )
    console.add_argument(
        "--no-browser", dest="browser", action="store_false", help="print the address, and open no browser"
    )
    console.add_argument("--port", metavar="P", type=int, help="port to listen on (default: 8700, or any free port)")
    _add_server(console)


def _add_server(serve: argparse.ArgumentParser) -> None:
    """Add the options that `serve` and `console` share."""
    _add_work_dir(serve)
    _add_config(serve)
    _add_gcs_root(serve)
    serve.add_argument(
        "--time-factor",
        metavar="N",
        type=float,
        default=1.0,
        help="speed-up of the schedule clock, to test a weekly schedule in minutes (%(default)g)",
    )
    serve.add_argument(
        "--max-runs",
        metavar="N",
        type=int,
        default=4,
        help="pipeline runs at once; the others are PENDING, in their order (%(default)d)",
    )
    _add_containers(serve.add_argument_group(_CONTAINERS))
    _add_custom_jobs(serve.add_argument_group(_FAULTS))


def _added(commands: "argparse._SubParsersAction[Any]", name: str, text: str, more: str = "") -> cli.Parser:
    """Add a command; its description is the help text as a sentence, and what else there is to say."""
    command: cli.Parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.{more}")
    return command


def _add_work_dir(command: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the option for the folder of the runs."""
    command.add_argument(
        "--work-dir",
        metavar="D",
        type=cli.folder,
        default=Path("runs"),
        help="folder for runs, and the pipeline root (./%(default)s)",
    )


def _add_config(command: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the option for the file of stand-ins."""
    command.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="stand-ins for what this machine lacks (default: localvertex.toml, if the current folder has one)",
    )


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["machines"]:
        # A command with commands of its own, which needs neither this parser nor what `run` needs.
        from localvertex.machines.__main__ import main as machines

        return machines(given[1:])
    options = _parser().parse_args(given)
    options.answer = cli.answer(options.command, **_ANSWERS.get(options.command, {}))
    if vars(options).get("json") is True:
        return cli.run_json(lambda: _command(options), options.answer, failures=(RecordNotWritten,))
    return cli.run(lambda: _command(options), failures=(RecordNotWritten,))


def _command(options: argparse.Namespace) -> int:
    # Imported late, so that `--help` stays quick.
    try:
        from localvertex.commands import commands
        from localvertex.errors import Refused
    except ModuleNotFoundError as error:
        from localvertex._base import extras

        # The base install is what `localvertex machines` needs.
        raise UserError(f"localvertex needs {error.name}; {extras.install('run')}") from None
    try:
        code: int = commands.COMMANDS[options.command](options)
    except Refused as error:
        options.answer |= {"error": str(error), "reasons": error.reasons, "proposal": error.proposal}
        print(f"error: {options.file or options.resume} cannot run here:", file=sys.stderr)
        for reason in error.reasons:
            print(f"  {reason}", file=sys.stderr)
        # A resumed run has the stand-ins that it was started with.
        if error.way_on and not options.resume:
            print(error.way_on, file=sys.stderr)
        return cli.WRONG_INPUT
    return code


if __name__ == "__main__":
    sys.exit(main())
