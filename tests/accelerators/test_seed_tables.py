"""The guides' count tables lost their blank cells; the limits of the GPUs say which column a cell is in."""

import itertools
import re

from tests.accelerators.conftest import COLUMNS_JA, DATA, LIMITS, SEEDS, limit_counts, possible_assignments, seed_rows


def test_short_rows_have_exactly_one_reading():
    """It finds ten ways by position for a short row and one that the limits allow."""
    for name, columns in SEEDS.items():
        short = {machine: cells for machine, cells in seed_rows(name).items() if len(cells) == 3}
        assert sorted(short) == [
            "n1-highcpu-96",
            "n1-highmem-64",
            "n1-highmem-96",
            "n1-standard-64",
            "n1-standard-96",
        ]
        for machine, cells in short.items():
            assert len(list(itertools.combinations(COLUMNS_JA, len(cells)))) == 10
            assert possible_assignments(machine, cells, columns) == [
                {"NVIDIA_TESLA_P4": (4,), "NVIDIA_TESLA_T4": (4,), "NVIDIA_TESLA_V100": (8,)}
            ]


def test_the_three_guides_agree(seed_counts):
    for name, columns in SEEDS.items():
        read = {}
        for machine, cells in seed_rows(name).items():
            (assignment,) = possible_assignments(machine, cells, columns)
            read |= {(machine, accelerator): counts for accelerator, counts in assignment.items()}
        assert len(seed_rows(name)) == (17 if name.startswith("000") else 22)
        assert read == {pair: counts for pair, counts in seed_counts.items() if pair in read}


def test_limits_reproduce_every_cell(seed_counts):
    machines = {machine for machine, _ in seed_counts if machine.startswith("n1-")}
    for machine, accelerator in itertools.product(machines, LIMITS):
        assert limit_counts(machine, accelerator) == seed_counts.get((machine, accelerator), ()), (machine, accelerator)


def test_v100_prose_of_the_guides_contradicts_their_own_table(seed_counts):
    """Neither 8 vCPU/52 GB (Japanese) nor 12/76 (the others) carries all 8 x V100 rows; 12/78 does."""
    with_eight = [machine for (machine, gpu), counts in seed_counts.items() if gpu.endswith("V100") and 8 in counts]
    sizes = {"standard": 3.75, "highmem": 6.5, "highcpu": 0.9}

    def contradicted(vcpus_per_gpu, gb_per_gpu):
        return [
            machine
            for machine in with_eight
            for _, family, vcpus in [machine.split("-")]
            if int(vcpus) > 8 * vcpus_per_gpu or int(vcpus) * sizes[family] > 8 * gb_per_gpu
        ]

    assert contradicted(8, 52) == ["n1-standard-96", "n1-highmem-96", "n1-highcpu-96"]
    assert contradicted(12, 76) == ["n1-highmem-96"]
    assert contradicted(12, 78) == []


def test_extracts_are_named_as_their_documents():
    assert all(re.fullmatch(r"00[0-4]_[0-9a-f]{16}\.txt", path.name) for path in (DATA / "seeds").iterdir())
