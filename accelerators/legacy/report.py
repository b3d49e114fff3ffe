"""What a conversion did to every field that it did not simply carry over."""

from dataclasses import dataclass, field
from typing import Literal

from userinput.errors import UserError

Kind = Literal["changed", "dropped", "doubtful", "decide"]


class LegacyInputError(UserError):
    """A config.yaml or command line has mistakes that have to be mended first; `problems` has one line for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, kw_only=True)
class Remark:
    """One thing that the owner of the job should know."""

    kind: Kind
    """changed: another value means the same now; dropped: there is nothing like it; doubtful: probably right;
    decide: the job cannot run, or not as before, until somebody decides."""
    field: str
    """The field or flag, as AI Platform Training calls it."""
    message: str


@dataclass(kw_only=True)
class Report:
    """All remarks of one conversion, in the order in which they came up."""

    remarks: list[Remark] = field(default_factory=list)

    def add(self, kind: Kind, field_name: str, message: str) -> None:
        """Note a remark once."""
        remark = Remark(kind=kind, field=field_name, message=" ".join(message.split()))
        if remark not in self.remarks:
            self.remarks.append(remark)

    @property
    def needs_decision(self) -> bool:
        """Whether somebody has to decide something before the job can run."""
        return any(remark.kind == "decide" for remark in self.remarks)
