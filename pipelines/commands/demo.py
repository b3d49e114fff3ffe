"""`make demo`: check the source, compile the pipeline, and run it with parameters that suit few images.

The one command that it runs is printed, so that a user can repeat it with one change.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from components.names import model_name_for
from localvertex._base.userinput import cli
from localvertex._base.userinput.errors import UserError

_DIGITS = "digits"
_OF_DIGITS = {"minimum_score": "0.95"}
_OF_OWN_IMAGES = {"minimum_score": "0", "image_size": "96", "global_batch_size": "16", "model": "small-resnet"}


def _parser() -> cli.Parser:
    parser = cli.Parser("python -m pipelines.commands.demo", description="Compile the pipeline and run it locally.")
    parser.add_argument(
        "source", metavar="SOURCE", help="digits, or images as the pipeline's parameter source has them"
    )
    parser.add_argument("--work-dir", metavar="DIR", default="runs", help="folder of the runs (%(default)s)")
    parser.add_argument(
        "--parameters", metavar="TEXT", default="", help="parameters of the pipeline as a shell has words: 'epochs=3'"
    )
    return parser


def _parameters(source: str, given: str) -> dict[str, str]:
    """Return the parameters of the run by name.

    Raises:
        UserError: The source cannot be used, or the text has no parameters.
    """
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise UserError(f"PARAMETERS={given!r} cannot be split into words: {error}; close each quote") from None
    for word in words:
        if word.find("=") < 1:
            raise UserError(f"PARAMETERS has {word!r}; expected NAME=VALUE, such as PARAMETERS='epochs=3 seed=1'")
    overriding = dict(word.split("=", 1) for word in words)
    source = overriding.pop("source", source)
    if source == _DIGITS:
        values = {"source": source} | _OF_DIGITS
    else:
        path = _checked(source)
        values = {"source": path, "model_name": model_name_for(path)} | _OF_OWN_IMAGES
    return values | overriding


def _checked(source: str) -> str:
    """Return the source, absolute if it is on this machine.

    Raises:
        UserError: It is on this machine, and has no images with classes.
    """
    # Data sets and buckets need a network; `prepare` checks them.
    if source.startswith(("tfds:", "gs://")):
        return source
    from trainer.data.sources.factory import open_source

    with tempfile.TemporaryDirectory() as scratch:
        open_source(source, scratch)
    return os.path.abspath(os.path.expanduser(source))


def _run(source: str, work_dir: str, given: str) -> int:
    parameters = _parameters(source, given)
    words = ["-m", "localvertex", "run", "build/image_training.json", "--work-dir", work_dir]
    words += [word for name, value in parameters.items() for word in ("--parameter", f"{name}={value}")]
    # What it prints is about machines in the cloud.
    compiled = subprocess.run([sys.executable, "compile.py"], stdout=subprocess.DEVNULL)
    if compiled.returncode:
        return compiled.returncode
    print(shlex.join([sys.orig_argv[0], *words]), end="\n\n", flush=True)
    # Ctrl-C and other signals then reach the run alone.
    os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 - it needs no shell


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo in the checkout, which is the current folder.

    Args:
        argv: The arguments without the program's name; None for `sys.argv[1:]`.

    Returns:
        The exit code of `compile.py` if it fails, or 2 if a value is wrong; otherwise this process becomes the run.
    """
    options = _parser().parse_args(argv)
    return cli.run(lambda: _run(options.source, options.work_dir, options.parameters))


if __name__ == "__main__":
    sys.exit(main())
