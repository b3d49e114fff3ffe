"""The remarks of a conversion on every field that it did not simply copy."""

from dataclasses import dataclass, field
from typing import Literal

from localvertex._base.userinput.errors import UserError

Kind = Literal["changed", "dropped", "doubtful", "decide"]


class LegacyInputError(UserError):
    """A config.yaml or command line has mistakes; `problems` has a line for each, and the command prints them all."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, kw_only=True)
class Remark:
    """A change or an open question that the user should know about."""

    kind: Kind
    """changed: another value means the same now; dropped: Vertex AI has no equivalent; doubtful: probably right;
    decide: the job cannot run, or not as before, until the user decides."""
    field: str
    """The field or flag, under its name on AI Platform Training."""
    message: str


@dataclass(kw_only=True)
class Report:
    """All remarks of one conversion, in the order in which they were added."""

    remarks: list[Remark] = field(default_factory=list)

    def add(self, kind: Kind, field_name: str, message: str) -> None:
        """Add a remark, unless the report already has it."""
        remark = Remark(kind=kind, field=field_name, message=" ".join(message.split()))
        if remark not in self.remarks:
            self.remarks.append(remark)

    @property
    def needs_decision(self) -> bool:
        """Whether the user has to decide something before the job can run."""
        return any(remark.kind == "decide" for remark in self.remarks)
