"""The page that `prepare` writes about what changed since the previous dataset. No failure of it fails the dataset."""

import sys

from trainer.data.changes import changes
from trainer.files import storage
from trainer.results.report import changes as report
from vertex_gpu_training.userinput.errors import UserError
from vertex_gpu_training.userinput.spelling import on_one_line

_NONE = "There is no previous dataset of this source and image size that this one can be compared with."


def write_page(previous_directory: str, new_directory: str, path: str) -> dict[str, float]:
    """Write the page and return the metrics.

    Args:
        previous_directory: Local or on gs://; empty if there is none. The page then has only this.
        new_directory: On this machine.
        path: Of the page.

    Returns:
        Name -> value; empty if there is no previous dataset, or it cannot be read.
    """
    if not previous_directory:
        storage.write_output(path, report.render_without(_NONE))
        return {}
    try:
        found = changes.between(previous_directory, new_directory)
    except (UserError, OSError) as error:
        reason = f"not compared with the previous dataset {previous_directory}: {on_one_line(error)}"
        print(f"note: {reason}", file=sys.stderr)
        storage.write_output(path, report.render_without(f"{reason[0].upper()}{reason[1:]}."))
        return {}
    storage.write_output(path, report.render(found, previous=previous_directory))
    return found.metrics()
