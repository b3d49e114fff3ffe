"""Runs compiled files in a network namespace that reaches nothing, and counts the attempts to leave it.

`python run_all.py FOLDER RESULT` writes one entry per file: how it ended, and the number of attempts.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

import localvertex


def attempts() -> int:
    """Return how many packets of this namespace had no route, whatever program sent them; DNS included."""
    rows = [line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Ip:")]
    six = [line.split() for line in Path("/proc/net/snmp6").read_text().splitlines()]
    return int(dict(zip(*rows, strict=True))["OutNoRoutes"]) + int(dict(six)["Ip6OutNoRoutes"])


def ended(file: Path, work_dir: Path) -> str:
    """Run a file and return its state, or "REFUSED" with the reasons."""
    options = localvertex.Options(work_dir=work_dir, max_backoff_seconds=0, grace_seconds=1, use_cache=False)
    try:
        record = localvertex.run(file, options=options)
    except localvertex.UserError as error:
        return f"REFUSED {error}"
    return f"{record['state']} {record['error'] or ''}"


def main(folder: Path, result: Path) -> None:
    found = {}
    for file in sorted(folder.glob("*.json")):
        before = attempts()
        with contextlib.redirect_stdout(io.StringIO()):
            state = ended(file, folder / "runs")
        found[file.stem] = [state, attempts() - before]
    result.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
