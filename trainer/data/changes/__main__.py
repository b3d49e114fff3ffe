"""Compare the images, classes and image statistics of two prepared datasets."""

import sys

from localvertex_base.userinput import cli, paths
from trainer import command_line
from trainer.data.changes import changes, report
from trainer.files import outputs


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.data.changes", description=__doc__)
    parser.add_argument("old", help="the previous dataset, local or gs://")
    parser.add_argument("new", help="the new dataset, local or gs://")
    parser.add_argument("--report", metavar="FILE", help="also write an HTML page")
    options = parser.parse_args(arguments)
    if options.report is not None:
        outputs.check_file("--report", options.report)
    found = changes.between(paths.check("OLD", options.old), paths.check("NEW", options.new))
    for name, value in found.metrics().items():
        print(f"{name}: {value}")
    for shift in found.shifts:
        print(f"shift: {shift.describe()}")
    if options.report is not None:
        outputs.write(options.report, report.render(found, previous=options.old))
        print(f"report: {options.report}")
    return 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
