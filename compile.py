"""`python compile.py`: check the machines, then write each pipeline to build/ as JSON and YAML."""

import argparse
import gc
import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import yaml
from google.protobuf import json_format
from kfp.compiler import pipeline_spec_builder

from components.container_image import PLACEHOLDER_IMAGE
from components.release.serving_machines import check_deployment
from components.train import fallbacks
from components.train.machines import check
from localvertex._base.userinput import cli, outputs, reading
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import did_you_mean
from pipelines.batch_prediction import batch_prediction
from pipelines.image_training import image_training
from pipelines.settings import Settings, describe, read_settings
from pipelines.steps import check_steps
from pipelines.training import training

_BUILD = "gcloud builds submit --tag REGION-docker.pkg.dev/PROJECT/REPOSITORY/image-training-python ."
_PIPELINES = {"image_training": image_training, "batch_prediction": batch_prediction, "training": training}
_DEFAULT_MACHINE = "e2-standard-4"
"""https://cloud.google.com/vertex-ai/docs/pipelines/machine-types, 2025-09-04."""
_RUN_LOCALLY = "python -m localvertex run"
_REQUIRED = {
    "batch_prediction": " --parameter source=FOLDER",
    "training": """ --parameter command='["python", "/path/to/train.py"]'""",
}
"""Options for the parameters that have no default."""


def _parser() -> cli.Parser:
    default = Settings()
    parser = cli.Parser(
        "python compile.py",
        description="Compile the pipelines for Vertex AI Pipelines.",
        epilog=f"keys of the settings file, with their defaults:\n{describe()}",
    )
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help=f"pipelines to compile: {', '.join(_PIPELINES)} (default: all)"
    )
    parser.add_argument(
        "--settings", metavar="FILE", type=pathlib.Path, help="YAML file with settings of the project, see below"
    )
    parser.add_argument(
        "--image", default=default.image, help="container image of all steps, ideally by digest: NAME@sha256:..."
    )
    parser.add_argument(
        "--cpu-image",
        default=default.cpu_image,
        help="container image of the steps without GPUs and of the server; for Dataflow, the one with Apache Beam"
        " (default: same as --image)",
    )
    parser.add_argument("--recipe", metavar="FILE", help="JSON or YAML file, the default of the parameter recipe")
    parser.add_argument("--region", default=default.region, help="check the machines for this region (%(default)s)")
    parser.add_argument(
        "--output-dir", type=cli.folder, default=pathlib.Path("build"), help="output folder (%(default)s)"
    )
    return parser


def _files(pipeline: Any, name: str, directory: pathlib.Path) -> dict[pathlib.Path, bytes]:
    """Return the content of a pipeline's two files by path."""
    paths = {suffix: directory / f"{name}.{suffix}" for suffix in ("json", "yaml")}
    for path in paths.values():
        if path.is_dir():
            raise UserError(f"{path} is a folder; remove it or give another --output-dir")
    # Vertex AI loads both formats. kfp deprecates its own JSON output, and writes YAML without the C library, slowly.
    spec, platform = map(json_format.MessageToDict, (pipeline.pipeline_spec, pipeline.platform_spec))
    documents = filter(None, (spec, platform))
    header = pipeline_spec_builder.extract_comments_from_pipeline_spec(spec, pipeline.description)
    as_yaml = header + yaml.dump_all(documents, Dumper=getattr(yaml, "CDumper", yaml.Dumper), sort_keys=True)
    as_json = json.dumps(spec, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return {paths["json"]: as_json.encode(), paths["yaml"]: as_yaml.encode()}


def _names(options: argparse.Namespace) -> list[str]:
    """Return the names of the pipelines to compile, in the order of the table.

    Raises:
        UserError: A name is unknown.
    """
    for name in options.names:
        if name not in _PIPELINES:
            hint = did_you_mean(name, _PIPELINES) or f"; expected one of {', '.join(_PIPELINES)}"
            raise UserError(f"no pipeline {name!r}{hint}")
    return [name for name in _PIPELINES if name in options.names or not options.names]


def _description(settings: Settings) -> list[str]:
    """Return one line per group of steps: what runs where."""
    sent = settings.notification
    targets = " and ".join(filter(None, (*sent.notify, sent.notify_webhook)))
    end = ("e-mail" if sent.notify else "summary") + f", sent to {targets}" * bool(targets)
    own, server = settings.steps.descriptions(), settings.resources.serving_image or "python -m trainer.serve"
    if "evaluate" in own:
        own["compare"] = own["evaluate"]
    others = ("prepare", "plan", "evaluate", "compare", "export", "record", "deploy")
    default = [step for step in others if step not in own]
    steps = {
        **own,
        ", ".join(default): f"Vertex AI Pipelines' default machine ({_DEFAULT_MACHINE})",
        "train": f"{settings.machines}; checked for {settings.region}",
        **_fallback_lines(settings),
        "register": f"Model Registry of the region, served by {server}",
        "at the end": end,
    }
    width = max(map(len, steps))
    return [f"{step:<{width}} {machine}" for step, machine in steps.items()]


def _fallback_lines(settings: Settings) -> dict[str, str]:
    """Return the other machines of the training, and what it costs to look for them; nothing without fallbacks."""
    _, *others = fallbacks.candidates(
        fallbacks.overlaid({}, settings.fallbacks.fallbacks), settings.values, region=settings.region
    )
    if not others:
        return {}
    waits = sum(each.machines.max_wait_seconds for each in others) + settings.machines.max_wait_seconds
    hours = (settings.machines.timeout_seconds + waits) / 3600
    lines = {f"  or else, {index}.": str(each) for index, each in enumerate(others, 1)}
    cost = f"a second machine ({_DEFAULT_MACHINE}) while it waits and trains, for at most {hours:,.1f} hours"
    return lines | {"  and meanwhile": cost}


def _next_commands(settings: Settings, path: pathlib.Path) -> list[str]:
    local = f"{_RUN_LOCALLY} {path}{_REQUIRED.get(path.stem, '')}"
    if settings.image == PLACEHOLDER_IMAGE:
        return [
            "Without --image the file runs only locally. For Vertex AI, `python cloud.py up --project PROJECT` builds",
            "and pushes the container image and compiles with it. By hand, first build and push it:",
            f"  {_BUILD}",
            "then recompile with --image and the printed digest. To run the file locally instead:",
            f"  {local}",
        ]
    return [
        f"Try it locally first: {local}",
        "Then upload it: Vertex AI > Pipelines > Create run > Upload file.",
    ]


def _compile(options: argparse.Namespace) -> int:
    directory: pathlib.Path = options.output_dir
    outputs.check_folder("--output-dir", directory)
    given = {"image": options.image, "cpu_image": options.cpu_image, "region": options.region}
    given["recipe"] = reading.json_of(options.recipe) if options.recipe else ""
    names, settings = _names(options), Settings(**given, **read_settings(options.settings))
    place = {"image": settings.image, "region": settings.region}
    findings = check(settings.machines, **place) + check_steps(settings.steps, **place)
    findings += fallbacks.check(settings.values, **place, check_machines=check)
    findings += check_deployment("deploy_endpoint", settings.serving, region=settings.region)
    files: dict[pathlib.Path, bytes] = {}
    for name in names:
        files |= _files(_PIPELINES[name](settings), name, directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        outputs.write(files)
    except OSError as error:
        raise UserError(f"cannot write to {directory}: {error.strerror}; give another --output-dir") from None
    for finding in findings:
        print(f"warning: {finding.message}", file=sys.stderr)
    paths = [directory / f"{name}.json" for name in names]
    written = [f"Wrote {path} and {path.with_suffix('.yaml')}." for path in paths]
    description = [*_description(settings), ""] if "image_training" in names else []
    print(*description, *written, *_next_commands(settings, paths[0]), sep="\n")
    return cli.DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Compile the pipeline.

    Args:
        argv: The arguments without the program's name; None for `sys.argv[1:]`.

    Returns:
        The exit code: 0 written, 2 a value is wrong.
    """
    options = _parser().parse_args(argv)
    return cli.run(lambda: _compile(options))


if __name__ == "__main__":
    # Imported objects stay until the end; the collector would visit them again and again.
    gc.freeze()
    sys.exit(main())
