"""The rows of the tables as types that refuse invalid values."""

from datetime import date
from typing import NamedTuple

Row = dict[str, str]
"""One row of a CSV file: column -> cell."""

# NamedTuples, not dataclasses: `check` creates these classes and hundreds of rows at every start.


class Accelerator(NamedTuple):
    """A kind of GPU or TPU."""

    name: str
    """The accelerator_type of the API, e.g. NVIDIA_TESLA_T4."""
    for_training: bool
    """Whether the documentation lists it for custom training."""
    end_of_support: date | None
    """The day from which the service no longer offers it; None when no date is announced."""
    flex_start: str
    """"yes", "no" or "uncertain": whether FLEX_START covers it."""
    capacity: str
    """Availability according to the documentation, e.g. "shared reservation required"; usually empty."""

    @classmethod
    def from_row(cls, row: Row) -> "Accelerator":
        """Read a row of accelerators.csv.

        Raises:
            KeyError: A column is missing.
            ValueError: The end of support is not a date.
        """
        flex_start = row["flex_start"].split(" ", 1)
        return cls(
            name=_parse_name(row, "accelerator_type"),
            for_training=row["listed_for_vertex_training"].startswith("yes"),
            end_of_support=_day(row["end_of_support"]),
            # "yes (page says "A100" without size: medium)" counts as uncertain.
            flex_start="uncertain" if flex_start[0] == "yes" and len(flex_start) > 1 else flex_start[0] or "no",
            capacity=row["capacity"],
        )

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU rather than a TPU."""
        return self.name.startswith("NVIDIA_")


class MachineType(NamedTuple):
    """A machine type that custom training accepts."""

    name: str
    vcpus: float | None
    memory_gb: float | None
    """vCPUs and memory in GB; None if no source was found."""
    kind: str
    """gpu-only and tpu-only need accelerators, gpu-optional may have them, cpu-only cannot."""

    @classmethod
    def from_row(cls, row: Row) -> "MachineType":
        """Read a row of vertex_machine_types.csv.

        Raises:
            KeyError: A column is missing.
            ValueError: A number is invalid or the kind is unknown.
        """
        kind = row["kind"]
        if kind not in ("cpu-only", "gpu-only", "gpu-optional", "tpu-only"):
            raise ValueError(f"kind is {kind!r}; expected cpu-only, gpu-only, gpu-optional or tpu-only")
        return cls(
            name=_parse_name(row, "machine_type"),
            vcpus=_number(row, "vcpus"),
            memory_gb=_number(row, "memory_gb"),
            kind=kind,
        )


class RegionEntry(NamedTuple):
    """The offer of one accelerator in one region."""

    accelerator_type: str
    region: str
    training: str
    """"yes", "no" (offered, but not for training) or "uncertain"."""
    default_quota: str
    """Default training quota as on the quota page, e.g. "8" or "Not available"; empty when unknown."""
    source_date: str
    confidence: str
    marker: str = ""
    """"†" where it is not offered for training, "*" where it is not offered for deployed models."""

    @classmethod
    def from_row(cls, row: Row) -> "RegionEntry":
        """Read a row of vertex_regions.csv.

        Raises:
            KeyError: A column is missing.
            ValueError: The training column is not yes, no or uncertain.
        """
        if row["training"] not in ("yes", "no", "uncertain"):
            raise ValueError(f"training is {row['training']!r}; expected yes, no or uncertain")
        return cls(
            accelerator_type=_parse_name(row, "accelerator_type"),
            region=_parse_name(row, "region"),
            training=row["training"],
            default_quota=row["default_training_quota"],
            source_date=row["source_date"],
            confidence=row["confidence"],
            marker=row.get("marker", ""),
        )

    def for_prediction(self) -> "RegionEntry":
        """Return the offer for deployed models; the quota page of training does not cover them."""
        offer = "no" if self.marker == "*" else "yes"
        return self._replace(training=offer, default_quota="", confidence="high")

    @property
    def doubtful(self) -> bool:
        """Whether the sources disagree on training with it in this region."""
        return self.training == "uncertain" or self.confidence == "uncertain"


class LegacyMachine(NamedTuple):
    """A machine name of AI Platform Training."""

    name: str
    accelerator_type: str
    accelerator_count: int
    """The GPUs inside the machine; empty and 0 if it has none."""
    machine_type: str
    """The Compute Engine type to use instead; empty if none is suggested."""
    confidence: str

    @classmethod
    def from_row(cls, row: Row) -> "LegacyMachine":
        """Read a row of legacy_machine_types.csv.

        Raises:
            KeyError: A column is missing.
            ValueError: The count is not a whole number.
        """
        return cls(
            name=_parse_name(row, "name"),
            accelerator_type=row["accelerator_type"],
            accelerator_count=int(row["accelerator_count"] or 0),
            machine_type=row["suggested_gce_machine_type"],
            confidence=row["confidence"],
        )


def _parse_name(row: Row, column: str) -> str:
    if name := row[column].strip():
        return name
    raise ValueError(f"{column} is empty; expected a name")


def _number(row: Row, column: str) -> float | None:
    cell = row[column]
    if not cell.strip():
        return None
    try:
        value = float(cell)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise ValueError(f"{column} is {cell!r}; expected a number above 0, or an empty cell")
    return value


def _day(cell: str) -> date | None:
    """Read "2026-09-15" or "2025-01-31 (service shutdown)"."""
    if not cell.strip():
        return None
    try:
        return date.fromisoformat(cell.strip()[:10])
    except ValueError:
        raise ValueError(f"end_of_support is {cell!r}; expected YYYY-MM-DD") from None
