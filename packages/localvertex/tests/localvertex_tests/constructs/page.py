"""Writes docs/compiled-file.md from the table of fields: `python -m localvertex_tests.constructs.page`."""

import collections
import itertools
import textwrap
from collections.abc import Iterable
from pathlib import Path

from localvertex_base.compiled.platforms import NO_EFFECT
from localvertex_base.compiled.treatment import Here, Treatment, treatments

PAGE = Path(__file__).parents[3] / "docs" / "compiled-file.md"

_TOP = """\
# Compiled files: field by field

What `localvertex run` does with each field of a compiled pipeline and of a PipelineJob. The table is
`localvertex_base/compiled/treatment.csv`, which the reader follows. Tests prove each row: at least one compiled
file in `tests/localvertex_tests/constructs` uses the field and gives the expected values, or is refused before
anything runs. This page is generated ([CONTRIBUTING](../../../CONTRIBUTING.md)). Google's operations have
[their own page](google-operations.md), and [localvertex.md](localvertex.md) explains the differences.

| | fields | |
|---|---|---|
"""
_MEANING = {
    Here.AS_ON_VERTEX: "the same values and states as on Vertex AI",
    Here.DIFFERENTLY: "handled in another way, which the table describes",
    Here.NO_EFFECT: "accepted; does not change a local run",
    Here.REFUSED: "refused before anything runs, unless it is empty; so is every field that is not in the protocol",
}
_SECOND = (
    *("PlatformSpec", "SinglePlatformSpec", "PlatformDeploymentConfig", "PipelineConfig", "WorkspaceConfig"),
    "KubernetesWorkspaceConfig",
)
"""The messages of the second document."""
_KUBERNETES = """
Settings of a step in the platform document (`deploymentSpec.executors`, `KubernetesExecutorConfig` of kfp-kubernetes):

- `activeDeadlineSeconds` is honoured: the step is stopped after this time.
- These have no effect, with a warning: {no_effect}.
- All others are refused, for example volumes and secrets.
"""


def written() -> str:
    """Return the page."""
    rows = list(treatments().values())
    counts = collections.Counter(row.here for row in rows)
    top = _TOP + "".join(f"| {here} | {counts[here]} | {text} |\n" for here, text in _MEANING.items())
    deployment = [row for row in rows if row.message.startswith("PipelineDeploymentConfig")]
    job = [row for row in rows if row.message.startswith(("PipelineJob", "EncryptionSpec"))]
    platforms = sorted([row for row in rows if row.message in _SECOND], key=lambda row: _SECOND.index(row.message))
    spec = [row for row in rows if row not in (*deployment, *job, *platforms)]
    no_effect = ", ".join(f"`{name}`" for name in sorted(NO_EFFECT) if not name.startswith("resourceTtl"))
    kubernetes = _wrapped(_KUBERNETES.format(no_effect=no_effect))
    tables = [("The pipeline", spec), ("Executors", deployment), ("The platform document", platforms)]
    return "".join([top, *(_table(*each) for each in tables), kubernetes, _table("The job", job)])


def _table(title: str, rows: Iterable[Treatment]) -> str:
    """Return a section with one table per message."""
    text = f"\n## {title}\n"
    for message, fields in itertools.groupby(rows, lambda row: row.message):
        text += f"\n### {message}\n\n| field | here | |\n|---|---|---|\n"
        text += "".join(f"| `{row.field}` | {row.here} | {row.how} |\n" for row in fields)
    return text


def _wrapped(text: str) -> str:
    """Break the list entries of a text at 120 columns."""
    return "\n".join(
        textwrap.fill(line, 120, subsequent_indent="  ", break_on_hyphens=False) if line.startswith("- ") else line
        for line in text.split("\n")
    )


if __name__ == "__main__":
    PAGE.write_text(written())
