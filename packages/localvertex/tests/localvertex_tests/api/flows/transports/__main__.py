"""Prints what a user's program sees over gRPC and over REST: `python -m localvertex_tests.api.flows.transports`.

Names of flows choose some of them.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from localvertex_tests.api.flows.transports.outcomes import outcomes


def _cell(outcome: dict[str, Any]) -> str:
    text = f"`{outcome['raises']}`: {outcome['message']}" if "raises" in outcome else f"works: {outcome['value']}"
    return text.replace("|", "\\|")


def main() -> None:
    """Print the table."""
    found = []
    for transport in ("grpc", "rest"):
        with tempfile.TemporaryDirectory() as folder:
            found.append(outcomes(Path(folder), transport, *sys.argv[1:]))
    print("| flow | gRPC | REST | what differs |\n|---|---|---|---|")
    for name, grpc in found[0].items():
        rest = found[1][name]
        what = "nothing" if grpc == rest else "class" if grpc | {"raises": rest.get("raises")} == rest else "all"
        shown = {"nothing": "the same", "class": f"`{rest.get('raises')}`: the same", "all": _cell(rest)}[what]
        print(f"| {name.replace('_', ' ')} | {_cell(grpc)} | {shown} | {what} |")


if __name__ == "__main__":
    main()
