"""Writes docs/fidelity.md from the table of facts: `python -m localvertex_tests.values.fidelity_page`."""

import itertools
import textwrap
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from localvertex.values.facts import Fact, facts

PAGE = Path(__file__).parents[3] / "docs" / "fidelity.md"

_TOP = """\
# Fidelity: what is as on Vertex AI

What steps and replicas see, and what follows a failure. This page is generated from `localvertex/values/facts.csv`,
from which localvertex takes its constants. Tests compare each recorded fact with a local run. A name such as
`exit.134` is a row of the table.

## Measured on Vertex AI

Measured on Vertex AI: none yet. To measure, `compile` a small pipeline, upload it (in Google's console: Pipelines,
Create run), and download the artifact `probe` of its step `collect`. `run` runs the same pipeline here:

```sh
python -m localvertex probe compile
python -m localvertex probe run
python -m localvertex probe collect probe
python -m localvertex probe collect probe --yes
python -m localvertex probe diff THEIRS.json
```

`compile` starts nothing, and prints an upper bound of the machine time. The pipeline fails by design. `collect` shows
everything that would leave your project: names of variables, limits, and classes of values, never a value of yours.
With `--yes` it writes `THEIRS.json`, which you can attach to an issue.
"""


_SHOWN = {"none": "not set in steps and replicas of the probe"}


class Status(StrEnum):
    """How a fact here compares to the public documentation."""

    SAME = "documented and the same"
    DIFFERENT = "documented, different"
    UNDOCUMENTED = "undocumented"


def status_of(fact: Fact) -> Status:
    """Return how a fact compares."""
    if not fact.documented:
        return Status.UNDOCUMENTED
    return Status.DIFFERENT if fact.why else Status.SAME


def written() -> str:
    """Return the page."""
    page = _TOP
    for status in Status:
        rows = [fact for fact in facts().values() if status_of(fact) is status]
        page += f"\n## {status.capitalize()}\n\n"
        page += "".join(map(_wrapped, _entries(rows, status)))
    rows = sorted((fact for fact in facts().values() if fact.unrecorded), key=lambda fact: fact.unrecorded)
    page += "\n## Not recorded by the probe\n\n"
    for reason, ids in itertools.groupby(rows, lambda fact: fact.unrecorded):
        page += _wrapped(f"{reason}: {', '.join(f'`{fact.id}`' for fact in ids)}")
    return page


def _entries(rows: list[Fact], status: Status) -> Iterable[str]:
    if status is Status.DIFFERENT:
        for fact in rows:
            yield f"`{fact.id}`: [{fact.documented}]({fact.source}); here {fact.here}: {fact.why}"
        return
    for source, of_source in itertools.groupby(sorted(rows, key=lambda fact: fact.source), lambda fact: fact.source):
        groups: dict[str, list[str]] = {}
        for fact in of_source:
            groups.setdefault(fact.here, []).append(f"`{fact.id}`")
        if source:
            name = source.rpartition("/")[2].removesuffix(".py").strip("_")
            yield f"[{name}]({source}): " + "; ".join(f"{', '.join(ids)}: {here}" for here, ids in groups.items())
        else:
            yield from (f"{_SHOWN.get(here, here)}: {', '.join(ids)}" for here, ids in groups.items())


def _wrapped(entry: str) -> str:
    return (
        textwrap.fill(f"- {entry}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(written())
