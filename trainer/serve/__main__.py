"""Serve an exported model by Vertex AI's prediction contract: `python -m trainer.serve MODEL_DIR`."""

import dataclasses
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future

from localvertex_base.userinput import cli
from localvertex_base.userinput.errors import UserError
from trainer import command_line
from trainer.serve import contract, model, server
from trainer.serve.model import Model

_STANDARD_INPUT = "-"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.serve", description=__doc__)
    parser.add_argument(
        "model_directory",
        metavar="MODEL_DIR",
        nargs="?",
        help="folder that `python -m trainer.export` wrote, also on gs:// [AIP_STORAGE_URI]; - reads its name from "
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
    server.serve(chosen, _read_model_loader() if directory == _STANDARD_INPUT else lambda: model.load(directory))
    return 0


def _read_model_loader() -> Callable[[], Model]:
    """Return what loads the model that the first line of standard input names; its end ends this process."""
    named: Future[str] = Future()

    def read() -> None:
        if line := sys.stdin.readline():
            named.set_result(line.rstrip("\n"))
            sys.stdin.read()
        # The parent has ended, perhaps in the middle of an import of this process.
        os._exit(0)

    def load() -> Model:
        # While the parent writes the model.
        model.import_libraries()
        return model.load(named.result())

    threading.Thread(target=read, name="parent", daemon=True).start()
    return load


if __name__ == "__main__":
    sys.exit(command_line.run(main))
