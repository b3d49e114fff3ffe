"""Serve an exported model by Vertex AI's prediction contract: `python -m trainer.serve MODEL_DIR`."""

import dataclasses
import os
import sys
import threading
from typing import TYPE_CHECKING

from localvertex._base.userinput import cli
from localvertex._base.userinput.errors import UserError
from trainer import command_line
from trainer.learner import libraries
from trainer.serve import contract, model, server

if TYPE_CHECKING:
    from trainer.results.saved_model import LoadedModel

_STANDARD_INPUT = "-"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.serve", description=__doc__)
    parser.add_argument(
        "model_directory",
        metavar="MODEL_DIR",
        nargs="?",
        help="folder that `python -m trainer.export` wrote, or its gs:// [AIP_STORAGE_URI]; - reads its name from "
        "standard input, whose end also ends the server",
    )
    parser.add_argument(
        "--port", type=int, metavar="N", help="port on this machine only, 0 for a free one [AIP_HTTP_PORT, or 8080]"
    )
    options = parser.parse_args(arguments)
    chosen = contract.of_environment()
    if options.port is not None:
        chosen = dataclasses.replace(chosen, host="127.0.0.1", port=options.port)
    directory = options.model_directory or chosen.model
    if not directory:
        raise UserError("no model; give MODEL_DIR, or set AIP_STORAGE_URI as Vertex AI does")
    server.serve(chosen, _load_named_model if directory == _STANDARD_INPUT else lambda: model.load(directory))
    return 0


def _load_named_model() -> "LoadedModel":
    """Return the model that the first line of standard input names; the end of standard input ends this process."""
    # While the parent writes the model.
    libraries.load()
    name = sys.stdin.readline().rstrip("\n")

    def end_with_parent() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_parent, name="parent", daemon=True).start()
    return model.load(name)


if __name__ == "__main__":
    sys.exit(command_line.run(main))
