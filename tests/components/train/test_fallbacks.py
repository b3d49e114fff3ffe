"""Fallbacks: what is refused before anything is queued, and which machines they make."""

from typing import Any

import pytest

from components.train import fallbacks
from components.train.fallbacks import Fallbacks, candidates, overlaid
from components.train.machines import check
from localvertex._base.userinput.errors import UserError
from localvertex.machines import Finding

IMAGE = "europe-west4-docker.pkg.dev/project/images/image-training-python@sha256:" + "a" * 64

L4 = {"machine_type": "g2-standard-8", "accelerator_type": "NVIDIA_L4", "accelerator_count": 1}
A100 = {"machine_type": "a2-highgpu-1g", "accelerator_type": "NVIDIA_TESLA_A100"}


def findings_of(*entries: dict[str, Any], **values: Any) -> list[Finding]:
    given = {**L4, "fallbacks": list(entries), **values}
    return fallbacks.check(given, image=IMAGE, region="us-central1", check_machines=check)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "fallbacks[0] is empty; expected some of region, machine_type"),
        ({"machine": "a2-highgpu-1g"}, "did you mean machine_type?"),
        ({"accelerator_count": "many"}, "fallbacks[0].accelerator_count is 'many'"),
        ({"replica_count": 0}, "fallbacks[0].replica_count is 0"),
        ({"max_wait_seconds": 0}, "fallbacks[0]: max_wait_seconds is 0"),
        ({"scheduling_strategy": "CHEAP"}, "fallbacks[0]: "),
        ({"accelerator_type": "NVIDIA_TESLA_T4"}, "fallbacks[0]: "),
        ({"region": "us-centrall1"}, "fallbacks[0]: "),
        (
            {"machine_type": "a3-highgpu-8g", "accelerator_type": "NVIDIA_H100_80GB", "accelerator_count": 2},
            "fallbacks[0]: ",
        ),
        ({"scheduling_strategy": "FLEX_START"}, ""),
        ({"region": "europe-west4"}, ""),
        (A100, ""),
        ({"machine_type": "n1-standard-8", "accelerator_type": ""}, ""),
    ],
    ids=str,
)
def test_a_fallback_that_vertex_ai_would_refuse_is_refused_by_its_place(entry: dict[str, Any], words: str) -> None:
    if not words:
        assert all(finding.severity == "warning" for finding in findings_of(entry))
        return
    with pytest.raises(UserError) as caught:
        findings_of(entry)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_place_of_the_second_is_named() -> None:
    with pytest.raises(UserError, match=r"^fallbacks\[1\]: "):
        findings_of({"scheduling_strategy": "SPOT"}, {"machine_type": "g2-standard-9"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tensorboard", "projects/1/locations/us-central1/tensorboards/2"),
        ("kms_key", "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"),
        ("network", "projects/1/global/networks/n"),
        ("reservation", "projects/p/zones/us-central1-a/reservations/r"),
        ("persistent_resource_id", "cluster"),
    ],
)
def test_what_belongs_to_a_region_is_refused_in_another_by_its_name(name: str, value: str) -> None:
    with pytest.raises(UserError, match=rf"^fallbacks\[0\]: region is europe-west4, but {name} is "):
        findings_of({"region": "europe-west4"}, **{name: value})
    findings_of({"scheduling_strategy": "STANDARD"}, **{name: value})


@pytest.mark.parametrize("exact", [True, "True", "true"])
@pytest.mark.parametrize(
    "entry", [A100, {"machine_type": "g2-standard-24", "accelerator_count": 2}, {"replica_count": 2}], ids=str
)
def test_an_exact_run_continues_only_on_the_same_devices(entry: dict[str, Any], exact: Any) -> None:
    findings_of(entry)
    findings_of({"machine_type": "g2-standard-12", "scheduling_strategy": "SPOT"}, exact=exact)
    with pytest.raises(UserError, match="with exact=true a training continues only on the same kind and number"):
        findings_of(entry, exact=exact)


def test_the_processor_of_an_exact_run_without_gpus_stays_the_same() -> None:
    cpu = {"machine_type": "n1-standard-8", "accelerator_type": "", "accelerator_count": 0}
    with pytest.raises(UserError, match="1 x c2-standard-8"):
        findings_of({"machine_type": "c2-standard-8"}, **cpu, exact=True)


def test_other_regions_are_reported_once() -> None:
    found = findings_of({"region": "europe-west4"}, {"region": "us-east1"}, {"region": "europe-west4", **A100})
    (message,) = [each.message for each in found if each.rule == "other-region"]
    assert message == (
        "in europe-west4, us-east1 the training reads data and writes checkpoints in the bucket of us-central1, which "
        "is slower, and Google charges for the traffic between regions"
    )


def test_a_candidate_has_what_it_does_not_change() -> None:
    entries = overlaid(
        {**L4, "accelerator_count": "1", "scheduling_strategy": "SPOT"},
        [
            {"scheduling_strategy": "STANDARD"},
            {"region": "us-east1", **A100},
            {"accelerator_type": "", "machine_type": "n1-standard-8"},
        ],
    )
    found = candidates(entries, {"boot_disk_size_gb": 200}, region="us-central1")
    assert list(map(str, found)) == [
        "1 x g2-standard-8 with 1 x NVIDIA_L4, SPOT in us-central1",
        "1 x g2-standard-8 with 1 x NVIDIA_L4, STANDARD in us-central1",
        "1 x a2-highgpu-1g with 1 x NVIDIA_TESLA_A100, SPOT in us-east1",
        "1 x n1-standard-8 without GPUs, SPOT in us-central1",
    ]
    assert {each.machines.boot_disk_size_gb for each in found} == {200}


def test_numbers_may_arrive_as_floats_and_texts() -> None:
    given = Fallbacks(fallbacks=[{"accelerator_count": 1.0, "replica_count": "2", "max_wait_seconds": 60.0}])
    assert given.fallbacks == [{"accelerator_count": 1, "replica_count": 2, "max_wait_seconds": 60}]


def test_without_fallbacks_nothing_is_checked() -> None:
    assert fallbacks.check(L4, image=IMAGE, region="us-central1", check_machines=check) == []
    assert Fallbacks().fallbacks == []
