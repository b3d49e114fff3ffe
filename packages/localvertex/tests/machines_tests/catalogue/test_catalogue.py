"""The packaged tables, and the user's own rows that replace or extend them."""

import csv
import datetime
from pathlib import Path

import pytest
from machines_tests.conftest import ROOT, pool

from localvertex._base.userinput.errors import UserError
from localvertex.machines import check_worker_pools, load_catalogue
from localvertex.machines.catalogue.catalogue import has_ended

TABLES = ROOT / "localvertex" / "machines" / "catalogue" / "data"
V100 = pool("n1-standard-32", "NVIDIA_TESLA_V100", 2)
MACHINES = "machine_type,vcpus,memory_gb,kind,source,source_date,confidence\n"
COUNTS = "machine_type,accelerator_type,valid_counts\n"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_row_has_source_date_and_confidence() -> None:
    known = {row["key"] for row in rows(TABLES / "sources.csv")}
    for path in sorted(TABLES.glob("*.csv")):
        if path.name == "sources.csv":
            continue
        for row in rows(path):
            assert row["source"], (path.name, row)
            assert row["confidence"], (path.name, row)
            assert row["source_date"] or row["confidence"] == "uncertain", (path.name, row)
            assert {part.split(":")[0] for part in row["source"].split(";")} <= known, (path.name, row["source"])


def test_tables_fit_together() -> None:
    catalogue = load_catalogue()
    assert len(catalogue.machines) == 117
    assert {machine for machine, _ in catalogue.counts} <= set(catalogue.machines)
    assert {accelerator for _, accelerator in catalogue.counts} <= set(catalogue.accelerators)
    for name, machine in catalogue.machines.items():
        assert bool(catalogue.accelerators_of(name)) is (machine.kind in ("gpu-only", "gpu-optional")), name
    for legacy in catalogue.legacy_machines.values():
        assert legacy.machine_type in catalogue.machines, legacy.name
    assert len([region for region, listed in catalogue.training_regions.items() if listed]) == 38


def test_end_of_support() -> None:
    ended = load_catalogue().accelerators["NVIDIA_TESLA_P100"]
    assert not has_ended(ended, datetime.date(2026, 9, 14))
    assert has_ended(ended, datetime.date(2026, 9, 15))


def test_own_rows_replace_add_and_remove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vertex_gpu_counts.csv").write_text(
        COUNTS + "n1-standard-32,NVIDIA_TESLA_V100,2;4\nn9-standard-4,NVIDIA_L4,1\ng2-standard-4,NVIDIA_L4,\n"
    )
    assert [f.rule for f in check_worker_pools([V100])] == ["accelerator-count"]
    # The variable is read at every call, not at import.
    monkeypatch.setenv("ACCELERATORS_CATALOGUE", str(tmp_path))
    own = load_catalogue()
    assert own.counts["n1-standard-32", "NVIDIA_TESLA_V100"] == (2, 4)
    assert own.counts["n9-standard-4", "NVIDIA_L4"] == (1,)
    assert own.counts["g2-standard-4", "NVIDIA_L4"] == ()
    assert own.counts["n1-standard-8", "NVIDIA_TESLA_T4"] == (1, 2, 4)
    assert check_worker_pools([V100]) == []
    monkeypatch.delenv("ACCELERATORS_CATALOGUE")
    assert [f.rule for f in check_worker_pools([V100])] == ["accelerator-count"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("vertex_gpu_counts.csv", COUNTS + "n1-standard-4,NVIDIA_L4,one\n", "valid_counts is 'one'"),
        ("vertex_gpu_counts.csv", "machine_type,valid_counts\nn1-standard-4,1\n", "column 'accelerator_type' is"),
        ("vertex_gpu_counts.csv", b"\xff\xfe\x00", "cannot be read as CSV"),
        ("vertex_gpu_counts.csv", COUNTS + 'n1-standard-4,"NVIDIA_L4,1\n', "cannot be read as CSV"),
        ("vertex_machine_types.csv", MACHINES + "x,-1,1,cpu-only,s,d,c\n", "vcpus is '-1'"),
        ("vertex_machine_types.csv", MACHINES + "x,1,1,big,s,d,c\n", "kind is 'big'"),
        ("vertex_counts.csv", COUNTS, "contains vertex_counts.csv; expected any of accelerators.csv"),
        ("readme.txt", "", "contains no .csv file"),
    ],
)
def test_wrong_tables_are_refused_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str | bytes, message: str
) -> None:
    monkeypatch.setenv("ACCELERATORS_CATALOGUE", str(tmp_path))
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=r"^[^\n]+$") as error:
        load_catalogue()
    assert message in str(error.value)


def test_a_folder_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATORS_CATALOGUE", str(tmp_path / "none"))
    with pytest.raises(UserError, match="is not a folder"):
        load_catalogue()
