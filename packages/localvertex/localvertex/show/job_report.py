"""The part of `run.html` about custom jobs: failures, and how each replica spent its time."""

from typing import Any

MEANING = {
    "productive": "training steps whose result is kept",
    "lost": "steps trained twice, and steps interrupted by a failure",
    "saving": "writing checkpoints",
    "restoring": "reading a checkpoint",
    "starting": "from process start to the first step",
    "evaluating": "on the validation split",
    "waiting": "no process running, or between events",
    "running": "a program that logs no steps",
}
"""Meaning of the kinds of localvertex/jobs/goodput/timeline.py, in the order of the legend."""


def sections(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one section for each custom job that has ended."""
    jobs = [task for task in tasks if (task.get("custom_job") or {}).get("goodput")]
    return [_section(task["title"], task["log"].rpartition("/")[0], task["custom_job"]) for task in jobs]


def _section(title: str, folder: str, job: dict[str, Any]) -> dict[str, Any]:
    """Return what the template shows of a job; `folder` is the folder of its logs, relative to the page."""
    goodput = job["goodput"]
    total = goodput["total_seconds"]
    seconds = goodput["seconds"]
    # A kind that occurs only in other replicas, such as running, has a colour but no seconds of the primary.
    used = {kind for segments in goodput["timeline"].values() for kind, _, _ in segments}
    return {
        "title": title,
        "goodput": goodput,
        "sentences": sentences(job),
        "replicas": [
            {
                **replica,
                "log": f"{folder}/{replica['name']}.log",
                "segments": _bars(goodput["timeline"][replica["name"]], total),
            }
            for replica in job["replicas"]
        ],
        "time_of": "all trials" if "num_trials" in goodput else "the primary replica",
        "marks": [[time, text, round(time / total * 100, 2)] for time, text in goodput["marks"]],
        "legend": [
            {"kind": kind, "meaning": meaning, "seconds": seconds.get(kind, 0.0)}
            for kind, meaning in MEANING.items()
            if kind in used or seconds.get(kind)
        ],
    }


def _bars(segments: list[list[Any]], total: float) -> list[dict[str, Any]]:
    """Return the segments with their position in percent of the job."""
    return [
        {
            "kind": kind,
            "left": round(start / total * 100, 3),
            "width": round((end - start) / total * 100, 3),
            "tip": f"{kind}, {end - start:.2f} s from {start:.2f} s",
        }
        for kind, start, end in segments
    ]


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
