"""Writes docs/compiled-file.md from the table of fields: `python -m localvertex_tests.constructs.page`."""

import itertools
import textwrap
from collections.abc import Iterable
from pathlib import Path

from localvertex._base.compiled.fields import Here, Treatment, treatments
from localvertex._base.compiled.platforms import NO_EFFECT

PAGE = Path(__file__).parents[3] / "docs" / "compiled-file.md"

_TOP = """\
# Compiled files: field by field

What `localvertex run` does with each field of a compiled pipeline and of a PipelineJob. This page is generated from
`localvertex/_base/compiled/treatment.csv`, which the reader follows, and tests prove each row with a compiled file.
Google's operations have [their own page](google-operations.md).

| word | meaning |
|---|---|
| no word | the same values and states as on Vertex AI |
"""
_MEANING = {
    Here.DIFFERENTLY: "handled in another way, which is described",
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

- These have no effect, with a warning: {no_effect}.
- All others are refused, for example volumes and secrets.
"""


def written() -> str:
    """Return the page."""
    rows = list(treatments().values())
    top = _TOP + "".join(f"| {here} | {text} |\n" for here, text in _MEANING.items())
    deployment = [row for row in rows if row.message.startswith("PipelineDeploymentConfig")]
    job = [row for row in rows if row.message.startswith(("PipelineJob", "EncryptionSpec"))]
    platforms = sorted([row for row in rows if row.message in _SECOND], key=lambda row: _SECOND.index(row.message))
    spec = [row for row in rows if row not in (*deployment, *job, *platforms)]
    no_effect = ", ".join(f"`{name}`" for name in sorted(NO_EFFECT) if not name.startswith("resourceTtl"))
    kubernetes = _KUBERNETES.format(no_effect=no_effect)
    lists = [("The pipeline", spec), ("Executors", deployment), ("The platform document", platforms)]
    page = "".join([top, *(_section(*each) for each in lists), kubernetes, _section("The job", job)])
    return "\n".join(_wrapped(line) for line in page.split("\n"))


def _section(title: str, rows: Iterable[Treatment]) -> str:
    """Return a section with an entry per message: its fields, and below it those that a word describes."""
    text, equal = f"\n## {title}\n\n", []
    for message, fields in itertools.groupby(rows, lambda row: row.message):
        by_words: dict[str, list[str]] = {}
        for row in fields:
            words = ", ".join(part for part in ("" if row.here is Here.AS_ON_VERTEX else row.here, row.how) if part)
            by_words.setdefault(words, []).append(f"`{row.field}`")
        if not any(by_words):
            equal.append(message)
            continue
        # A field above them names them.
        if all(words.startswith("refused, with `") for words in by_words):
            continue
        text += f"- **{message}** {', '.join(by_words.pop('', []))}".rstrip() + "\n"
        text += "".join(f"  - {', '.join(names)}: {words}\n" for words, names in by_words.items())
    return text + (f"- As on Vertex AI with all their fields: {', '.join(equal)}\n" if equal else "")


def _wrapped(line: str) -> str:
    """Break a list entry at 120 columns."""
    if not line.lstrip().startswith("- "):
        return line
    return textwrap.fill(line, 120, subsequent_indent=" " * (line.find("- ") + 2), break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(written())
