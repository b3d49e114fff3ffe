"""What `suggest` offers is what `check` accepts."""

import datetime

import pytest

from accelerators import check_worker_pools, load_catalogue
from accelerators.catalogue.fallbacks import Wish, fitting, ladder

TODAY = datetime.date(2026, 11, 20)
GPUS = [name for name, kind in load_catalogue().accelerators.items() if kind.is_gpu]


@pytest.mark.parametrize("accelerator", GPUS)
def test_every_rung_passes_check(accelerator):
    catalogue = load_catalogue()
    regions = ["", *catalogue.training_regions]
    for count in (1, 2, 4, 8, 16):
        for region in regions:
            wish = Wish(accelerator_type=accelerator, accelerator_count=count, region=region, today=TODAY)
            for rung in ladder(catalogue, wish):
                machine = {"machine_type": rung.machine_type, "accelerator_type": rung.accelerator_type}
                machine["accelerator_count"] = rung.accelerator_count
                pool = {"machine_spec": machine, "replica_count": 1, "container_spec": {"image_uri": "r/p/i:1"}}
                findings = check_worker_pools(
                    [pool], region=rung.region, scheduling_strategy=rung.scheduling_strategy, today=TODAY
                )
                assert [finding for finding in findings if finding.severity == "error"] == [], rung


def test_machines_are_smallest_first_and_large_enough():
    catalogue = load_catalogue()
    wish = Wish(accelerator_type="NVIDIA_TESLA_T4", accelerator_count=1, min_memory_gb=30, min_vcpus=8, today=TODAY)
    names = [machine.name for machine in fitting(catalogue, wish)]
    assert names == ["n1-standard-8", "n1-highmem-8", "n1-standard-16", "n1-highmem-16"]


def test_the_ladder_starts_where_it_was_asked_for_and_goes_on_elsewhere():
    wish = Wish(accelerator_type="NVIDIA_L4", accelerator_count=1, region="us-west1", today=TODAY)
    rungs = ladder(load_catalogue(), wish)
    assert [(rung.machine_type, rung.region, rung.scheduling_strategy) for rung in rungs[:3]] == [
        ("g2-standard-4", "us-west1", "STANDARD"),
        ("g2-standard-4", "us-west1", "FLEX_START"),
        ("g2-standard-4", "us-west1", "SPOT"),
    ]
    assert len({rung.region for rung in rungs}) > 1
    longer = ladder(load_catalogue(), wish, most=50)
    assert len({rung.accelerator_type for rung in longer}) > 1
    assert len(set(longer)) == len(longer)


@pytest.mark.parametrize(
    "wrong",
    [
        {"accelerator_count": 0},
        {"accelerator_count": 1, "min_vcpus": -1},
        {"accelerator_count": 1, "min_memory_gb": float("nan")},
    ],
)
def test_a_wish_refuses_nonsense(wrong):
    with pytest.raises(ValueError, match=r"expected at least 1|0 or more"):
        Wish(accelerator_type="NVIDIA_L4", today=TODAY, **wrong)
