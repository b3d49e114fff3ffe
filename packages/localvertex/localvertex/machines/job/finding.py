"""A finding of a check about one path in a file, and the sentence made of it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote

Severity = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong, its path in the file, and what would be right.

    Raises:
        ValueError: The severity is neither "error" nor "warning", or rule or message is empty or has a line break.
    """

    rule: str
    """Stable id of the rule, e.g. "accelerator-count"."""
    severity: Severity
    """"error": the service would refuse it or silently do something else; "warning": it may be wrong."""
    path: str
    """Path in the file, e.g. "worker_pool_specs[0].machine_spec.accelerator_count"."""
    message: str
    """One line: what was found, what was expected, what to do."""
    alternatives: tuple[str, ...] = ()
    """The nearest valid choices, readable, e.g. "n1-highmem-8 with 2 x NVIDIA_TESLA_V100"."""

    def __post_init__(self) -> None:
        """Refuse a finding that cannot be printed on one line."""
        if self.severity not in ("error", "warning"):
            raise ValueError(f"severity is {self.severity!r}; expected 'error' or 'warning'")
        for name in ("rule", "message"):
            text = getattr(self, name)
            if not text or "\n" in text:
                raise ValueError(f"{name} is {text!r}; expected one line of text")

    @property
    def nearest(self) -> str:
        """The nearest valid choices as the end of a sentence; empty where there are none."""
        return f" (nearest: {', '.join(self.alternatives)})" if self.alternatives else ""


class Findings:
    """Collects findings in the order in which they are added."""

    findings: list[Finding]

    def error(self, rule: str, path: str, message: str, alternatives: tuple[str, ...] = ()) -> None:
        """Add an error; an empty path is the whole file."""
        self._add(rule, "error", path, message, alternatives)

    def warning(self, rule: str, path: str, message: str, alternatives: tuple[str, ...] = ()) -> None:
        """Add a warning."""
        self._add(rule, "warning", path, message, alternatives)

    def _add(self, rule: str, severity: Severity, path: str, message: str, alternatives: tuple[str, ...]) -> None:
        # A name from the file may contain line breaks; a message is one line.
        text = message if message.isprintable() else quote(message, 400)
        finding = Finding(rule=rule, severity=severity, path=path or "(top)", message=text, alternatives=alternatives)
        self.findings.append(finding)


def refuse(findings: Iterable[Finding], *, rules: Collection[str] = ()) -> None:
    """Refuse errors, and warnings of some rules.

    Raises:
        UserError: There are some; the message has the reasons and the nearest valid choices.
    """
    if refused := [each for each in findings if each.severity == "error" or each.rule in rules]:
        raise UserError(sentences(refused))


def sentences(findings: Iterable[Finding]) -> str:
    """Return several findings as one line, each sentence once."""
    return "; ".join(dict.fromkeys(f"{finding.message}{finding.nearest}" for finding in findings))
