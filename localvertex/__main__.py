"""The command line: `python -m localvertex`."""

import argparse
import sys
from pathlib import Path

from userinput import cli

DESCRIPTION = """\
Runs a compiled Kubeflow pipeline file (the one that is uploaded to Vertex AI) on this machine: Python steps as
processes, Google Cloud custom jobs as local jobs, model uploads into a local registry folder.
"""

EXAMPLES = """\
examples:
  python -m localvertex run build/image_training.json --parameter epochs=3
  python -m localvertex run --resume latest
  python -m localvertex list
  python -m localvertex show latest
  python -m localvertex logs latest train
  python -m localvertex serve --port 8700

exit codes: 0 done, 1 it ran and failed, 2 the input is wrong, 130 stopped by Ctrl-C, 143 stopped by SIGTERM
"""


def parser() -> cli.Parser:
    """The options of all commands."""
    top = cli.Parser("localvertex", description=DESCRIPTION, epilog=EXAMPLES)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_run(commands)
    add_serve(commands)
    about = {
        "list": "list the runs of the work directory",
        "show": "show one run: steps, metrics, models, error",
        "logs": "print the log of a task, or the logs of all",
        "clean": "remove finished runs; models, checkpoints and caches stay",
    }
    for name, text in about.items():
        command = commands.add_parser(name, help=text, description=text.capitalize() + ".")
        add_work_dir(command)
        if name in ("show", "logs"):
            command.add_argument("run", metavar="RUN", help="run id, its unique beginning, or 'latest'")
        if name == "logs":
            command.add_argument("task", metavar="TASK", nargs="?", help="task name or path, its unique part is enough")
        if name == "clean":
            command.add_argument(
                "runs", metavar="RUN", nargs="*", help="runs to remove (default: all that are finished)"
            )
            command.add_argument("--cache", action="store_true", help="remove the step cache and environments as well")
    return top


def add_run(commands: "argparse._SubParsersAction[cli.Parser]") -> None:
    """The options of `run`."""
    text = "run a compiled pipeline"
    run = commands.add_parser("run", help=text, description=text.capitalize() + ".")
    run.add_argument("file", metavar="FILE", type=Path, nargs="?", help="compiled pipeline, .json or .yaml")
    run.add_argument(
        "--resume", metavar="RUN", help="instead of FILE: go on with an earlier run, finished steps are not repeated"
    )
    values = run.add_argument_group("parameters of the pipeline")
    values.add_argument(
        "--parameter", "-p", metavar="NAME=VALUE", action="append", default=[],
        help="value of one parameter; text as it is, everything else as JSON; may be repeated",
    )  # fmt: skip
    values.add_argument(
        "--parameter-file", metavar="F", type=Path, help="JSON or YAML object of values; --parameter wins over it"
    )
    how = run.add_argument_group("how it runs")
    add_work_dir(how)
    how.add_argument("--run-id", metavar="ID", help="name of the run (default: pipeline name and time)")
    how.add_argument(
        "--project", metavar="P", default="local-project", help="project id for placeholders (%(default)s)"
    )
    how.add_argument("--region", metavar="R", default="us-central1", help="region for placeholders (%(default)s)")
    how.add_argument(
        "--image", metavar="IMAGE=COMMAND", action="append", default=[],
        help="what stands before the command of containers with this image, for programs that are not here; repeatable",
    )  # fmt: skip
    how.add_argument("--no-cache", action="store_true", help="run every step, whatever the cache holds")
    how.add_argument(
        "--max-parallel", metavar="N", type=int, help="steps at once (default: number of cores, at least 2)"
    )
    how.add_argument("--fail-fast", action="store_true", help="once a step has failed, start no other; exit tasks run")
    how.add_argument(
        "--max-backoff", metavar="SECONDS", type=float, default=10.0,
        help="longest wait before a retry, whatever the pipeline says (%(default)s)",
    )  # fmt: skip
    how.add_argument(
        "--grace", metavar="SECONDS", type=float, default=10.0,
        help="time between SIGTERM and SIGKILL when the run is stopped (%(default)s)",
    )  # fmt: skip
    add_custom_jobs(run)


def add_custom_jobs(run: argparse.ArgumentParser) -> None:
    """The options of `run` that concern the pipeline's custom jobs."""
    jobs = run.add_argument_group("custom jobs: machines that go away (docs/faults.md)")
    jobs.add_argument(
        "--fault", metavar="FAULT", action="append", default=[],
        help="what goes wrong, and when, e.g. 'SIGKILL workerpool1-0 at step 30', 'SIGTERM workerpool0-0 at 20s grace "
        "30s', 'preempt all every 45s'; may be repeated",
    )  # fmt: skip
    jobs.add_argument("--faults", choices=["random"], help="one to three faults at random moments")
    jobs.add_argument(
        "--seed", metavar="N", type=int, help="of the random faults (0); the same again for the same number"
    )
    jobs.add_argument(
        "--restart-rule", choices=["service", "strict"], default="service",
        help="whether an ordinary non-zero exit code restarts a replica or ends the job (%(default)s)",
    )  # fmt: skip


def add_serve(commands: "argparse._SubParsersAction[cli.Parser]") -> None:
    """The options of `serve`."""
    text = "answer the Vertex AI API on 127.0.0.1 and run what is asked for (docs/serve.md)"
    serve = commands.add_parser("serve", help=text, description=text.capitalize() + ".")
    add_work_dir(serve)
    serve.add_argument("--port", metavar="P", type=int, default=8700, help="0 for a free one (%(default)s)")
    serve.add_argument(
        "--time-factor", metavar="N", type=float, default=1.0,
        help="how fast time passes for schedules, to try a weekly one in minutes (%(default)g)",
    )  # fmt: skip


def folder(text: str) -> Path:
    """A folder's name; an empty one would mean the current folder without saying so."""
    if not text.strip():
        raise argparse.ArgumentTypeError("empty; give a folder, . for the current one")
    return Path(text)


def add_work_dir(command: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Where runs are kept."""
    command.add_argument(
        "--work-dir",
        metavar="D",
        type=folder,
        default=Path("runs"),
        help="folder of runs, pipeline root (./%(default)s)",
    )


def main(arguments: list[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    options = parser().parse_args(arguments)
    return cli.run(lambda: _command(options))


def _command(options: argparse.Namespace) -> int:
    # The engine is imported only now: `--help` stays quick.
    from localvertex import commands
    from localvertex.errors import Refused

    try:
        code: int = commands.COMMANDS[options.command](options)
    except Refused as error:
        print(f"error: {options.file or options.resume} uses features that cannot run locally:", file=sys.stderr)
        for reason in error.reasons:
            print(f"  {reason}", file=sys.stderr)
        return cli.WRONG_INPUT
    return code


if __name__ == "__main__":
    sys.exit(main())
