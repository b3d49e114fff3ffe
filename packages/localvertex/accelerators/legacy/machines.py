"""Machine names of AI Platform Training, the GPUs inside them, and the replacements of retired GPUs."""

from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from accelerators.catalogue.catalogue import Catalogue, has_ended
from accelerators.catalogue.nearest import SUCCESSORS
from accelerators.legacy.report import Report
from localvertex_base.userinput.spelling import did_you_mean, join_or

MACHINE_PLACEHOLDER = "MACHINE_TYPE"

_POD_TYPES = {"TPU_V2_POD": "TPU_V2", "TPU_V3_POD": "TPU_V3"}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine of one replica, in the names of Vertex AI."""

    machine_type: str
    accelerator_type: str = ""
    accelerator_count: int = 0

    def as_spec(self) -> dict[str, Any]:
        """Return the machine_spec."""
        spec: dict[str, Any] = {"machine_type": self.machine_type}
        if self.accelerator_type:
            spec |= {"accelerator_type": self.accelerator_type, "accelerator_count": self.accelerator_count}
        return spec

    def __str__(self) -> str:
        """Return "n1-standard-16 with 4 x NVIDIA_TESLA_K80"."""
        gpus = f" with {self.accelerator_count} x {self.accelerator_type}" if self.accelerator_type else ""
        return f"{self.machine_type}{gpus}"


@dataclass(frozen=True, kw_only=True)
class MachineConverter:
    """The conversion of the machines of one job, which adds its remarks to the report."""

    catalogue: Catalogue
    report: Report
    replace_retired: bool
    region: str
    today: date

    def machine(self, name: str, accelerator: dict[str, Any], role: str) -> Machine:
        """Return the machine for a legacy or Compute Engine name and an acceleratorConfig."""
        old = self.catalogue.legacy_machines.get(name)
        if old is None:
            return self._current(self._compute_engine(name, accelerator, role), role)
        if old.category == "tpu":
            return self._tpu(name, accelerator, role)
        machine = Machine(
            machine_type=old.machine_type,
            accelerator_type=old.accelerator_type,
            accelerator_count=old.accelerator_count,
        )
        doubt = "" if old.confidence == "high" else "; no Google table lists it, so compare the sizes"
        if old.machine_type == "n1-standard-8" and old.category == "cpu":
            doubt = "; its equivalent n1-highcpu-8 is not offered for training"
        self.report.add("doubtful" if doubt else "changed", f"{role}Type", f"{name} becomes {machine}{doubt}")
        if accelerator:
            message = f"{name} has its own GPUs or none; acceleratorConfig was never allowed with it and is left out"
            self.report.add("decide", f"{role}Config.acceleratorConfig", message)
        return self._current(machine, role)

    def _compute_engine(self, name: str, accelerator: dict[str, Any], role: str) -> Machine:
        kind = str(accelerator.get("type") or "").upper().replace("-", "_")
        count = int(accelerator.get("count") or 0)
        if name not in self.catalogue.machines and name != MACHINE_PLACEHOLDER:
            known = (*self.catalogue.machines, *self.catalogue.legacy_machines)
            hint = did_you_mean(name, known) or "; choose one"
            message = f"{name} is not a machine type for custom training{hint}"
            self.report.add("decide", f"{role}Type", message)
        if bool(kind) != bool(count):
            message = f"type is {kind or 'missing'} and count is {count}; set both or neither"
            self.report.add("decide", f"{role}Config.acceleratorConfig", message)
        if kind in _POD_TYPES:
            message = f"{kind} is {_POD_TYPES[kind]} with a count of 32 or more on Vertex AI; check the count"
            self.report.add("decide", f"{role}Config.acceleratorConfig", message)
            kind = _POD_TYPES[kind]
        self._never_worked(name, kind, count, role)
        return Machine(machine_type=name, accelerator_type=kind, accelerator_count=count)

    def _never_worked(self, name: str, kind: str, count: int, role: str) -> None:
        """Add a remark if AI Platform Training itself would have rejected the machine."""
        listed_there = any(machine == name for machine, _ in self.catalogue.legacy_counts)
        if not kind or not count or not listed_there:
            return
        valid = self.catalogue.legacy_counts.get((name, kind), ())
        if count not in valid:
            valid_there = f"supported {join_or(valid)} there" if valid else "did not support this GPU there"
            message = (
                f"{count} x {kind} on {name}: AI Platform Training {valid_there}, so this job never ran as written"
            )
            self.report.add("doubtful", f"{role}Config.acceleratorConfig", message)

    def _tpu(self, name: str, accelerator: dict[str, Any], role: str) -> Machine:
        message = (
            f"{name}: a TPU job on Vertex AI is one pool with one replica, so a separate master cannot be kept; "
            "choose a TPU or GPU machine yourself"
        )
        self.report.add("decide", f"{role}Type", message)
        kind = str(accelerator.get("type") or "").upper().replace("-", "_")
        kind = _POD_TYPES.get(kind, kind)
        count = int(accelerator.get("count") or 0)
        if kind not in ("TPU_V2", "TPU_V3") or not count:
            return Machine(machine_type=MACHINE_PLACEHOLDER)
        return Machine(machine_type="cloud-tpu", accelerator_type=kind, accelerator_count=count)

    def _current(self, machine: Machine, role: str) -> Machine:
        entry = self.catalogue.accelerators.get(machine.accelerator_type)
        if entry is None or not has_ended(entry, self.today):
            return machine
        ended = f"{entry.name} reached its end of support on {entry.end_of_support}"
        successor = _replacement(self.catalogue, machine, self.region, self.today)
        if successor is None:
            message = f"{ended} and no GPU replaces it on {machine.machine_type}; choose another machine"
            self.report.add("decide", f"{role}Type", message)
            return machine
        if not self.replace_retired:
            message = f"{ended}; proposed: {successor} (pass --replace-retired to apply it)"
            self.report.add("decide", f"{role} accelerator", message)
            return machine
        message = f"{ended}: {machine} becomes {successor} (--replace-retired)"
        larger = (machine.accelerator_type, successor.accelerator_type) == ("NVIDIA_TESLA_K80", "NVIDIA_TESLA_V100")
        if larger:
            message += ", a larger GPU at a much higher price; compare prices, fewer of them may do"
        self.report.add("doubtful" if larger else "changed", f"{role} accelerator", message)
        return successor


def _replacement(catalogue: Catalogue, machine: Machine, region: str, today: date) -> Machine | None:
    """Return the machine with a current GPU instead of a retired one, if possible in the same number.

    Args:
        catalogue: The tables.
        machine: A machine whose accelerator reached its end of support.
        region: Region of the job; "" for any. If it offers no successor, one from elsewhere is returned.
        today: The day for end-of-support dates.
    """
    successors = [
        name for name in SUCCESSORS.get(machine.accelerator_type, ()) if not _has_ended(catalogue, name, today)
    ]
    here = [name for name in successors if _is_offered(catalogue, name, region)]
    for same_count in (True, False):
        for name in (*here, *successors):
            counts = catalogue.counts.get((machine.machine_type, name), ())
            if machine.accelerator_count in counts:
                return replace(machine, accelerator_type=name)
            if counts and not same_count:
                nearest = min(counts, key=lambda count: abs(count - machine.accelerator_count))
                return replace(machine, accelerator_type=name, accelerator_count=nearest)
    return None


def _has_ended(catalogue: Catalogue, name: str, today: date) -> bool:
    return name not in catalogue.accelerators or has_ended(catalogue.accelerators[name], today)


def _is_offered(catalogue: Catalogue, name: str, region: str) -> bool:
    entry = catalogue.regions.get((name, region))
    return not region or (entry is not None and entry.training == "yes")
