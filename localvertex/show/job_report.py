"""The part of `run.html` about custom jobs: what went wrong, and what the time of each replica went into."""

from typing import Any

MEANING = {
    "productive": "steps that count",
    "lost": "steps trained twice, and what a failure cut off",
    "saving": "checkpoints",
    "restoring": "taking up a checkpoint",
    "starting": "from the start of a process to its first step",
    "evaluating": "on validation pictures",
    "waiting": "no process, or between events",
    "running": "a program that tells of no steps",
}
"""Kinds of localvertex/custom_jobs/goodput/timeline.py in words, in the order of the legend."""


def sections(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One section for each custom job that has ended."""
    jobs = [task for task in tasks if (task.get("custom_job") or {}).get("goodput")]
    return [section(task["title"], task["log"].rpartition("/")[0], task["custom_job"]) for task in jobs]


def section(title: str, folder: str, job: dict[str, Any]) -> dict[str, Any]:
    """What the template shows of a job; `folder` holds its logs, relative to the page."""
    goodput = job["goodput"]
    total = goodput["total_seconds"]
    seconds = goodput["seconds"]
    # What only other replicas did, such as running, has a colour but no seconds of the primary.
    used = {kind for segments in goodput["timeline"].values() for kind, _, _ in segments}
    return {
        "title": title,
        "goodput": goodput,
        "sentences": sentences(job),
        "replicas": [
            {
                **replica,
                "log": f"{folder}/{replica['name']}.log",
                "segments": bars(goodput["timeline"][replica["name"]], total),
            }
            for replica in job["replicas"]
        ],
        "marks": [[time, text, round(time / total * 100, 2)] for time, text in goodput["marks"]],
        "legend": [
            {"kind": kind, "meaning": meaning, "seconds": seconds.get(kind, 0.0)}
            for kind, meaning in MEANING.items()
            if kind in used or seconds.get(kind)
        ],
    }


def bars(segments: list[list[Any]], total: float) -> list[dict[str, Any]]:
    """Segments with their place in percent of the job."""
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
    """The job in words."""
    goodput = job["goodput"]
    said = []
    if goodput["fraction"] is None:
        said.append(
            f"{goodput['total_seconds']:.1f} s; no replica told of steps (docs/events.md), so there is no goodput."
        )
    else:
        said.append(
            f"Goodput {goodput['fraction']:.0%}: {goodput['seconds']['productive']:.1f} s of "
            f"{goodput['total_seconds']:.1f} s went into the {counted(goodput['num_steps'], 'step')} that count."
        )
    if goodput["num_lost_steps"]:
        said.append(f"{counted(goodput['num_lost_steps'], 'step')} had to be trained again.")
    if job["num_restarts"]:
        said.append(
            f"{counted(job['num_restarts'], 'restart')}, {job['num_preemptions']} of them after a preemption: "
            f"one failure in {goodput['mean_seconds_between_failures']:.1f} s."
        )
    if goodput["best_seconds_between_saves"] is not None:
        between = goodput["mean_seconds_between_saves"]
        now = f"; it saved every {between:.2g} s" if between else ""
        said.append(
            f"At this rate of failures, and {1000 * goodput['mean_save_seconds']:.3g} ms a save, a checkpoint every "
            f"{goodput['best_seconds_between_saves']:.2g} s loses least (Young and Daly){now}."
        )
    return said


def counted(number: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
