"""The catalogue of machines, accelerators and regions, and the only reader of its CSV files."""

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.machines.catalogue.rows import Accelerator, LegacyMachine, MachineType, RegionEntry, Row

_VARIABLE = "ACCELERATORS_CATALOGUE"
"""Environment variable with a folder of the user's own tables; read when a catalogue is loaded."""

_DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, kw_only=True, eq=False)
class Catalogue:
    """Machines, accelerators and regions as dated facts; keys are the names that the service uses."""

    accelerators: dict[str, Accelerator]
    """Accelerators by accelerator_type."""
    machines: dict[str, MachineType]
    """Machine types by machine_type; only types that custom training accepts."""
    counts: dict[tuple[str, str], tuple[int, ...]]
    """(machine_type, accelerator_type) -> valid accelerator_count per replica; a missing pair is not allowed."""
    regions: dict[tuple[str, str], RegionEntry]
    """(accelerator_type, region) -> the offer according to the locations and quota pages."""
    training_regions: dict[str, bool]
    """Region -> whether all sources list it for custom training; a region that no source lists is missing."""
    prediction_machines: dict[str, MachineType]
    """Machine types by machine_type; only types on which a model can be deployed, or predict in a batch."""
    prediction_counts: dict[tuple[str, str], tuple[int, ...]]
    """The same as `counts`, for the replicas of a deployed model."""
    ended_images: dict[tuple[str, str], date]
    """(framework, version or "*") of Google's prebuilt training images -> the day after which they may be missing."""
    legacy_machines: dict[str, LegacyMachine]
    """Machine names of AI Platform Training."""
    legacy_tiers: dict[tuple[str, str], tuple[int, str]]
    """(scale tier, role) of AI Platform Training -> (replica count, machine name)."""

    @property
    def newest_source(self) -> str:
        """The newest source date of the region entries, as YYYY-MM-DD."""
        return max((entry.source_date for entry in self.regions.values()), default="")

    @cached_property
    def for_prediction(self) -> "Catalogue":
        """The same tables for deployed models: their machines, and the regions that serve with an accelerator."""
        return replace(
            self,
            machines=self.prediction_machines,
            counts=self.prediction_counts,
            regions={key: entry.for_prediction() for key, entry in self.regions.items()},
        )

    def accelerators_of(self, machine_type: str) -> list[str]:
        """Return the accelerators that this machine type supports, in the order of the table."""
        return [accelerator for machine, accelerator in self.counts if machine == machine_type]


def load_catalogue() -> Catalogue:
    """Read the packaged tables, then the user's own rows over them.

    Own tables are in the folder in the environment variable ACCELERATORS_CATALOGUE and have the same file names. A row
    with the same key replaces the packaged row, others are added.

    Raises:
        UserError: The folder or one of its tables cannot be used; the message names file and line.
    """
    return _load(os.environ.get(_VARIABLE, ""))


@lru_cache(maxsize=8)
def _load(folder: str) -> Catalogue:
    tables: JsonObject = {field: {} for field, *_ in _TABLES.values()}
    for path in [*(_DATA / name for name in _TABLES), *(_own_tables(folder) if folder else [])]:
        field, reader, columns = _TABLES[path.name]
        for line, row in _rows(path):
            try:
                key = tuple(row[column].strip() for column in columns)
                tables[field][key if len(key) > 1 else key[0]] = reader(row)
            except KeyError as missing:
                raise UserError(f"{path}:{line}: the column {missing} is missing") from None
            except ValueError as error:
                raise UserError(f"{path}:{line}: {error}") from None
    return Catalogue(**tables)


def _own_tables(folder: str) -> list[Path]:
    if not os.path.isdir(folder):
        raise UserError(f"{_VARIABLE}={folder} is not a folder; give one with any of {', '.join(_TABLES)}")
    names = sorted(path.name for path in Path(folder).glob("*.csv"))
    unknown = [name for name in names if name not in _TABLES and name != "sources.csv"]
    if unknown or not names:
        found = f"contains {', '.join(unknown)}" if unknown else "contains no .csv file"
        raise UserError(f"{_VARIABLE}={folder} {found}; expected any of {', '.join(_TABLES)}")
    return [Path(folder, name) for name in _TABLES if name in names]


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True, restval="")
            for row in reader:
                yield reader.line_num, {key: value for key, value in row.items() if isinstance(key, str)}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} cannot be read as CSV: {error}") from None


def _counts(row: Row) -> tuple[int, ...]:
    cell = row["valid_counts"]
    try:
        return tuple(int(part) for part in cell.split(";") if part.strip())
    except ValueError:
        raise ValueError(f"valid_counts is {cell!r}; expected whole numbers separated by ';', e.g. 1;2;4") from None


def _end(row: Row) -> date:
    return date.fromisoformat(row["end_of_availability"])


def _is_listed(row: Row) -> bool:
    return row["custom_training_docs"] == "yes" and row["custom_training_gcloud_528"] == "yes"


def _tier(row: Row) -> tuple[int, str]:
    return int(row["replica_count"]), row["legacy_machine_name"]


_MACHINE, _PAIR = ("machine_type",), ("machine_type", "accelerator_type")
_TABLES: dict[str, tuple[str, Callable[[Row], Any], tuple[str, ...]]] = {
    "accelerators.csv": ("accelerators", Accelerator.from_row, ("accelerator_type",)),
    "vertex_machine_types.csv": ("machines", MachineType.from_row, _MACHINE),
    "vertex_gpu_counts.csv": ("counts", _counts, _PAIR),
    "vertex_regions.csv": ("regions", RegionEntry.from_row, ("accelerator_type", "region")),
    "vertex_training_regions.csv": ("training_regions", _is_listed, ("region",)),
    "prediction_machine_types.csv": ("prediction_machines", MachineType.from_row, _MACHINE),
    "prediction_gpu_counts.csv": ("prediction_counts", _counts, _PAIR),
    "prebuilt_training_images.csv": ("ended_images", _end, ("framework", "version")),
    "legacy_machine_types.csv": ("legacy_machines", LegacyMachine.from_row, ("name",)),
    "legacy_scale_tiers.csv": ("legacy_tiers", _tier, ("scale_tier", "role")),
}
"""File -> the field of the catalogue that it fills, the reader of a row, and the columns of its key."""


def has_ended(accelerator: Accelerator, today: date) -> bool:
    """Return whether the support of this accelerator has ended on the given day."""
    return accelerator.end_of_support is not None and accelerator.end_of_support <= today
