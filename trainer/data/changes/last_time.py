"""Writes `prepare`'s page on what changed since the previous dataset. An error of it does not fail `prepare`."""

import sys
import traceback
from collections.abc import Callable, MutableMapping
from typing import Any

from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import on_one_line
from trainer.data.changes import changes, report
from trainer.files import outputs

_NONE = "There is no previous dataset of this source and image size, or it can no longer be used."


def page(path: str, metrics: MutableMapping[str, Any]) -> Callable[[str, str, str], None]:
    """Return a function that writes the page.

    The function takes a folder with metadata and list of the previous dataset, the address of that dataset, and the
    new dataset. The first two are empty if there is no previous dataset.

    Args:
        path: File of the page; empty for none.
        metrics: Receives the figures; stays empty without a readable previous dataset.
    """

    def write(folder: str, address: str, directory: str) -> None:
        if path:
            outputs.write(path, _render(folder, address, directory, metrics))

    return write


def _render(folder: str, address: str, directory: str, metrics: MutableMapping[str, Any]) -> str:
    if not folder:
        return report.render_without(_NONE)
    try:
        found = changes.between(folder, directory)
        rendered = report.render(found, previous=address)
    # The dataset is good, whatever is wrong with the previous one or with the comparison.
    except Exception as error:
        if not isinstance(error, UserError | OSError):
            traceback.print_exc()
        reason = f"not compared with the previous dataset {address}: {on_one_line(error)}"
        print(f"note: {reason}", file=sys.stderr)
        return report.render_without(f"{reason[0].upper()}{reason[1:]}.")
    metrics.update(found.metrics())
    return rendered
