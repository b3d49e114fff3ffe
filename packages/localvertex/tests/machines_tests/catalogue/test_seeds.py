"""The count tables of the guides lost their blank cells; the limits of the GPUs determine the column of each cell."""

import itertools
import re

from machines_tests.seeds import (
    COLUMNS_JA,
    GB_PER_VCPU,
    GUIDES,
    LIMITS,
    SEEDS,
    Counts,
    limit_counts,
    possible_assignments,
    resolved_counts,
    seed_rows,
)

SeedCounts = dict[tuple[str, str], Counts]


def test_short_rows_have_exactly_one_reading() -> None:
    """A short row has ten readings by position, and one that the limits allow."""
    for name, columns in GUIDES.items():
        short = {machine: cells for machine, cells in seed_rows(name).items() if len(cells) == 3}
        large = ["n1-highcpu-96", "n1-highmem-64", "n1-highmem-96", "n1-standard-64", "n1-standard-96"]
        assert sorted(short) == large
        for machine, cells in short.items():
            assert len(list(itertools.combinations(COLUMNS_JA, len(cells)))) == 10
            assert possible_assignments(machine, cells, columns) == [
                {"NVIDIA_TESLA_P4": (4,), "NVIDIA_TESLA_T4": (4,), "NVIDIA_TESLA_V100": (8,)}
            ]


def test_the_three_guides_agree(seed_counts: SeedCounts) -> None:
    for name in GUIDES:
        read = resolved_counts(name)
        assert len(seed_rows(name)) == (17 if name.startswith("000") else 22)
        assert read == {pair: counts for pair, counts in seed_counts.items() if pair in read}


def test_limits_reproduce_every_cell(seed_counts: SeedCounts) -> None:
    machines = {machine for machine, _ in seed_counts if machine.startswith("n1-")}
    assert len(machines) == 17
    for machine, accelerator in itertools.product(machines, LIMITS):
        assert limit_counts(machine, accelerator) == seed_counts.get((machine, accelerator), ()), (machine, accelerator)


def test_v100_prose_of_the_guides_contradicts_their_own_table(seed_counts: SeedCounts) -> None:
    """Neither 8 vCPU/52 GB (Japanese) nor 12/76 (the others) covers all rows with 8 x V100; 12/78 does."""
    with_eight = [machine for (machine, gpu), counts in seed_counts.items() if gpu.endswith("V100") and 8 in counts]

    def contradicted(vcpus_per_gpu: int, gb_per_gpu: int) -> list[str]:
        return [
            machine
            for machine in with_eight
            for _, family, vcpus in [machine.split("-")]
            if int(vcpus) > 8 * vcpus_per_gpu or int(vcpus) * GB_PER_VCPU[family] > 8 * gb_per_gpu
        ]

    assert contradicted(8, 52) == ["n1-standard-96", "n1-highmem-96", "n1-highcpu-96"]
    assert contradicted(12, 76) == ["n1-highmem-96"]
    assert contradicted(12, 78) == []


def test_extracts_are_named_as_their_documents() -> None:
    names = [path.name for path in SEEDS.iterdir()]
    assert len(names) == 4
    assert all(re.fullmatch(r"00[0-4]_[0-9a-f]{16}\.txt", name) for name in names)
