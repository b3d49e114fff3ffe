"""`python compile.py`: check the machines, then write build/image_training.json and .yaml."""

import argparse
import dataclasses
import json
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from google.protobuf import json_format
from kfp import compiler

from pipelines.image_training import image_training
from pipelines.settings import Settings
from training_job.image import PLACEHOLDER_IMAGE
from training_job.machines import Machines, check
from userinput import cli, files
from userinput.errors import UserError

BUILD = "gcloud builds submit --tag REGION-docker.pkg.dev/PROJECT/REPOSITORY/image-training-python ."
RUN_HERE = "python -m localvertex run"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's values; the defaults are those of `Settings`."""
    default = Settings()
    parser = cli.Parser("python compile.py", description="Compile the image training pipeline for Vertex AI Pipelines.")
    images = parser.add_argument_group("images")
    images.add_argument("--image", default=default.image, help="image of all steps, best by digest: NAME@sha256:...")
    images.add_argument("--serving-image", default=default.serving_image, help="prediction container (%(default)s)")
    machines = parser.add_argument_group("machines (defaults of the pipeline's parameters)")
    machines.add_argument("--region", default=default.region, help="check the machines for this region (%(default)s)")
    for field in dataclasses.fields(Machines):
        flag = f"--{field.name.replace('_', '-')}"
        value = getattr(default.machines, field.name)
        machines.add_argument(
            flag, type=type(value), default=value, metavar=type(value).__name__.upper(), help="(%(default)s)"
        )
    other = parser.add_argument_group("other")
    other.add_argument(
        "--notify",
        nargs="*",
        metavar="EMAIL",
        help="end with Google's notification e-mail; addresses are its default recipients",
    )
    other.add_argument(
        "--output-dir", type=pathlib.Path, default=pathlib.Path("build"), help="folder to write to (%(default)s)"
    )
    return parser.parse_args(argv)


def settings_from(flags: argparse.Namespace) -> Settings:
    """Return the settings that the flags ask for.

    Raises:
        UserError: A value makes no sense by itself.
    """
    machines = Machines(**{field.name: getattr(flags, field.name) for field in dataclasses.fields(Machines)})
    return Settings(
        image=flags.image,
        serving_image=flags.serving_image,
        region=flags.region,
        machines=machines,
        recipients=None if flags.notify is None else tuple(flags.notify),
    )


def write(pipeline: Any, directory: pathlib.Path) -> pathlib.Path:
    """Write the JSON and the YAML of the pipeline, both or none, and return the path of the JSON."""
    directory.mkdir(parents=True, exist_ok=True)
    written = {suffix: directory / f"image_training.{suffix}" for suffix in ("json", "yaml")}
    for path in written.values():
        if path.is_dir():
            raise UserError(f"{path} is a folder; remove it or give another --output-dir")
    with tempfile.TemporaryDirectory() as scratch:
        aside = pathlib.Path(scratch) / written["yaml"].name
        compiler.Compiler().compile(pipeline, str(aside))
        yaml = aside.read_bytes()
    # kfp deprecates its own JSON output, Vertex AI loads both: the same message, as JSON.
    spec = json_format.MessageToDict(pipeline.pipeline_spec)
    text = json.dumps(spec, indent=2, sort_keys=True, ensure_ascii=False)
    files.write_all({written["json"]: f"{text}\n".encode(), written["yaml"]: yaml})
    return written["json"]


def describe(settings: Settings) -> str:
    """Return, a line each, what will run where."""
    if settings.recipients is None:
        end = "summary"
    else:
        end = f"e-mail to {', '.join(settings.recipients) or 'the recipients given at submission'}"
    where = {
        "prepare, plan, evaluate, export, record": "Vertex AI Pipelines' default machine (e2-standard-4)",
        "train": f"{settings.machines}; checked for {settings.region}",
        "register": f"Model Registry of the pipeline's region, served by {settings.serving_image}",
        "at the end": end,
    }
    return "\n".join(f"{step:<41} {place}" for step, place in where.items())


def next_step(settings: Settings, path: pathlib.Path) -> list[str]:
    """Return, a line each, what to do with the file."""
    if settings.image == PLACEHOLDER_IMAGE:
        return [
            "No --image was given: the file runs on your own machine only. For Vertex AI, build and push the image,",
            f"  {BUILD}",
            "then compile again with --image and the digest that this prints. Here and now:",
            f"  {RUN_HERE} {path}",
        ]
    return [
        f"Try it here first: {RUN_HERE} {path}",
        "Then upload it: Vertex AI > Pipelines > Create run > Upload file.",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Compile; return the exit code: 0 written, 2 a value is wrong."""
    flags = parse(argv)
    return cli.run(lambda: compile_pipeline(flags))


def compile_pipeline(flags: argparse.Namespace) -> int:
    """Check the machines, write the files and print what will run where.

    Raises:
        UserError: A value is wrong, or the folder cannot be written to.
    """
    settings = settings_from(flags)
    findings = check(settings.machines, image=settings.image, region=settings.region)
    try:
        path = write(image_training(settings), flags.output_dir)
    except OSError as error:
        raise UserError(f"cannot write to {flags.output_dir}: {error.strerror}; give another --output-dir") from None
    for finding in findings:
        print(f"warning: {finding.message}", file=sys.stderr)
    print(
        describe(settings), "", f"Wrote {path} and {path.with_suffix('.yaml')}.", *next_step(settings, path), sep="\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
