"""The candidates that `suggest` prints are accepted by `check`."""

import datetime
from typing import Any

import pytest

from accelerators import check_worker_pools, load_catalogue
from accelerators.catalogue.fallbacks import Candidate, Requirements, fallbacks, fitting

TODAY = datetime.date(2026, 11, 20)
GPUS = [name for name, kind in load_catalogue().accelerators.items() if kind.is_gpu]


@pytest.mark.parametrize("accelerator", GPUS)
def test_every_candidate_passes_check(accelerator: str) -> None:
    catalogue = load_catalogue()
    regions = ["", *catalogue.training_regions]
    for count in (1, 2, 4, 8, 16):
        for region in regions:
            requirements = Requirements(
                accelerator_type=accelerator, accelerator_count=count, region=region, today=TODAY
            )
            for candidate in fallbacks(catalogue, requirements):
                assert errors(candidate) == [], candidate


def errors(candidate: Candidate) -> list[str]:
    machine = {"machine_type": candidate.machine_type, "accelerator_type": candidate.accelerator_type}
    pool = {
        "machine_spec": machine | {"accelerator_count": candidate.accelerator_count},
        "replica_count": 1,
        "container_spec": {"image_uri": "r/p/i:1"},
    }
    findings = check_worker_pools(
        [pool], region=candidate.region, scheduling_strategy=candidate.scheduling_strategy, today=TODAY
    )
    return [finding.message for finding in findings if finding.severity == "error"]


def test_only_retired_or_reserved_accelerators_are_replaced_at_once() -> None:
    catalogue = load_catalogue()
    replaced = set()
    for name in GPUS:
        counts = [count for machine in catalogue.machines_with(name) for count in catalogue.counts[machine, name]]
        requirements = Requirements(accelerator_type=name, accelerator_count=min(counts, default=1), today=TODAY)
        first, *others = fallbacks(catalogue, requirements)
        assert len(others) == 11
        if first.accelerator_type != name:
            replaced.add(name)
    assert replaced == {"NVIDIA_TESLA_K80", "NVIDIA_TESLA_P100", "NVIDIA_GB200"}


def test_machines_are_smallest_first_and_large_enough() -> None:
    requirements = Requirements(
        accelerator_type="NVIDIA_TESLA_T4", accelerator_count=1, min_memory_gb=30, min_vcpus=8, today=TODAY
    )
    names = [machine.name for machine in fitting(load_catalogue(), requirements)]
    assert names == ["n1-standard-8", "n1-highmem-8", "n1-standard-16", "n1-highmem-16"]


def test_fallbacks_start_in_the_requested_region_and_continue_elsewhere() -> None:
    requirements = Requirements(accelerator_type="NVIDIA_L4", accelerator_count=1, region="us-west1", today=TODAY)
    candidates = fallbacks(load_catalogue(), requirements)
    assert [(one.machine_type, one.region, one.scheduling_strategy) for one in candidates[:3]] == [
        ("g2-standard-4", "us-west1", "STANDARD"),
        ("g2-standard-4", "us-west1", "FLEX_START"),
        ("g2-standard-4", "us-west1", "SPOT"),
    ]
    assert len({one.region for one in candidates}) > 1
    longer = fallbacks(load_catalogue(), requirements, limit=50)
    assert len({one.accelerator_type for one in longer}) > 1
    assert len(set(longer)) == len(longer)


@pytest.mark.parametrize(
    "wrong",
    [
        {"accelerator_count": 0},
        {"accelerator_count": 1, "min_vcpus": -1},
        {"accelerator_count": 1, "min_memory_gb": float("nan")},
    ],
)
def test_invalid_requirements_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"expected at least 1|0 or more"):
        Requirements(accelerator_type="NVIDIA_L4", today=TODAY, **wrong)
