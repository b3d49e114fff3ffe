"""Every cell of the legacy and the Vertex count table, tried with every count from 1 to 16."""

import datetime
import itertools

import pytest
from machines_tests.conftest import TODAY, pool
from machines_tests.seeds import LIMITS, Counts, limit_counts

from localvertex.machines import Finding, check_worker_pools, load_catalogue
from localvertex.machines.legacy.convert import convert

BEFORE_P100_ENDED = datetime.date(2026, 9, 14)
COUNTS = range(1, 17)
FLEX_RULE = "flex-start-accelerator"

# Transcribed from Google's page on configuring compute as of 2026-08-20; the A2 rows are in the seeds, too.
L4 = {"4": 1, "8": 1, "12": 1, "16": 1, "24": 2, "32": 1, "48": 4, "96": 8}
FIXED = {
    **{f"a2-highgpu-{n}g": ("NVIDIA_TESLA_A100", n) for n in (1, 2, 4, 8)},
    "a2-megagpu-16g": ("NVIDIA_TESLA_A100", 16),
    **{f"a2-ultragpu-{n}g": ("NVIDIA_A100_80GB", n) for n in (1, 2, 4, 8)},
    **{f"a3-highgpu-{n}g": ("NVIDIA_H100_80GB", n) for n in (1, 2, 4, 8)},
    "a3-megagpu-8g": ("NVIDIA_H100_MEGA_80GB", 8),
    "a3-ultragpu-8g": ("NVIDIA_H200_141GB", 8),
    "a4-highgpu-8g": ("NVIDIA_B200", 8),
    "a4x-highgpu-4g": ("NVIDIA_GB200", 4),
    **{f"g2-standard-{size}": ("NVIDIA_L4", count) for size, count in L4.items()},
    **{f"g4-standard-{48 * n}": ("NVIDIA_RTX_PRO_6000", n) for n in (1, 2, 4, 8)},
}
N1 = [
    *(f"n1-standard-{n}" for n in (4, 8, 16, 32, 64, 96)),
    *(f"n1-highmem-{n}" for n in (2, 4, 8, 16, 32, 64, 96)),
    *(f"n1-highcpu-{n}" for n in (16, 32, 64, 96)),
]
GPUS = sorted({*LIMITS, *(accelerator for accelerator, _ in FIXED.values())})
FLEX_START = {"NVIDIA_L4", "NVIDIA_TESLA_A100", "NVIDIA_H100_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200"}
FLEX_START_DOUBTFUL = {"NVIDIA_A100_80GB", "NVIDIA_H100_MEGA_80GB"}


def is_valid(machine: str, accelerator: str, count: int) -> bool:
    if machine in FIXED:
        return FIXED[machine] == (accelerator, count)
    if machine in N1 and accelerator in LIMITS and accelerator != "NVIDIA_TESLA_K80":
        return count in limit_counts(machine, accelerator)
    return False


def check(machine: str, accelerator: str, count: int, strategy: str, today: datetime.date) -> list[Finding]:
    return check_worker_pools([pool(machine, accelerator, count)], scheduling_strategy=strategy, today=today)


def readable(alternative: str) -> tuple[str, str, int]:
    machine, _, rest = alternative.partition(" with ")
    count, _, accelerator = rest.partition(" x ")
    return machine, accelerator, int(count)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["STANDARD", "SPOT", "FLEX_START"])
def test_vertex_table_cell_by_cell(strategy: str) -> None:
    """Exactly what the limits and Google's table allow is accepted; otherwise the alternatives are valid."""
    machines = list(load_catalogue().machines)
    assert {*N1, *FIXED} <= set(machines)
    tried = accepted = 0
    for machine, accelerator, count in itertools.product(machines, GPUS, COUNTS):
        findings = check(machine, accelerator, count, strategy, BEFORE_P100_ENDED)
        # GB200 always needs a reservation, whatever the count; the strategy has its own rule.
        wrong = [f for f in findings if f.severity == "error" and f.rule not in ("reservation", FLEX_RULE)]
        what = (machine, accelerator, count, [finding.message for finding in wrong])
        assert bool(wrong) is not is_valid(machine, accelerator, count), what
        for finding in wrong:
            assert_offers(finding, machine, strategy, what)
        assert_strategy(findings, accelerator, strategy, what)
        tried, accepted = tried + 1, accepted + (not wrong)
    assert tried == 117 * 14 * 16
    assert accepted == sum(is_valid(*cell) for cell in itertools.product([*N1, *FIXED], GPUS, COUNTS))


def assert_offers(finding: Finding, machine: str, strategy: str, what: object) -> None:
    """Alternatives are valid; a TPU machine supports no GPU, and its message says what it needs instead."""
    if finding.rule == "tpu" or machine.startswith(("ct5", "ct6", "tpu")):
        return
    assert finding.alternatives, what
    for machine_type, accelerator, count in map(readable, finding.alternatives):
        assert is_valid(machine_type, accelerator, count), what
        assert strategy != "FLEX_START" or accelerator in FLEX_START, what


def assert_strategy(findings: list[Finding], accelerator: str, strategy: str, what: object) -> None:
    rules = {finding.rule for finding in findings}
    able = accelerator in FLEX_START | FLEX_START_DOUBTFUL
    assert (FLEX_RULE in rules) is (strategy == "FLEX_START" and not able), what
    assert ("flex-start-doubtful" in rules) is (strategy == "FLEX_START" and accelerator in FLEX_START_DOUBTFUL), what


def test_end_of_support_depends_on_the_day() -> None:
    last_day, first_day = BEFORE_P100_ENDED, datetime.date(2026, 9, 15)
    rules = {f.rule: f.severity for f in check("n1-standard-8", "NVIDIA_TESLA_P100", 1, "STANDARD", last_day)}
    assert rules == {"end-of-support": "warning"}
    rules = {f.rule: f.severity for f in check("n1-standard-8", "NVIDIA_TESLA_P100", 1, "STANDARD", first_day)}
    assert rules == {"end-of-support": "error"}
    for machine in N1:
        (ended,) = [f for f in check(machine, "NVIDIA_TESLA_K80", 1, "STANDARD", TODAY) if f.rule == "end-of-support"]
        assert ended.severity == "error"
        assert ended.alternatives
        assert all(is_valid(*readable(one)) for one in ended.alternatives)


def test_every_cell_of_the_guides_is_converted(seed_counts: dict[tuple[str, str], Counts]) -> None:
    for (machine, accelerator), counts in seed_counts.items():
        for count in counts:
            config = {"count": count, "type": accelerator}
            document = {
                "trainingInput": {
                    "scaleTier": "CUSTOM",
                    "masterType": machine,
                    "masterConfig": {"acceleratorConfig": config, "imageUri": "europe-docker.pkg.dev/p/r/t:1"},
                }
            }
            done = convert(document, replace_retired=True, today=TODAY)
            made = done.job["job_spec"]["worker_pool_specs"][0]["machine_spec"]
            what = (machine, accelerator, count)
            assert is_valid(made["machine_type"], made["accelerator_type"], made["accelerator_count"]), what
            assert not done.needs_decision, (what, done.report.remarks, done.findings)
