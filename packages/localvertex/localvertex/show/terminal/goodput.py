"""The goodput of a custom job in sentences."""

from typing import Any


def sentences(job: dict[str, Any]) -> list[str]:
    """Describe the job in sentences."""
    goodput = job["goodput"]
    texts = []
    if goodput["fraction"] is None:
        texts.append(
            f"{goodput['total_seconds']:.1f} s. No replica logged steps (docs/events.md), so there is no goodput."
        )
    else:
        texts.append(
            f"Goodput {goodput['fraction']:.0%}: {goodput['seconds']['productive']:.1f} s of "
            f"{goodput['total_seconds']:.1f} s were spent on the {_count(goodput['num_steps'], 'step')} that count."
        )
    if goodput["num_lost_steps"]:
        texts.append(f"{_count(goodput['num_lost_steps'], 'step')} had to be repeated.")
    if job["num_restarts"]:
        texts.append(f"{_count(job['num_restarts'], 'restart')}, {job['num_preemptions']} of them after a preemption.")
    return texts


def _count(number: int, noun: str) -> str:
    """Return `1 step`, `2 steps`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
