"""The page "What resumes exactly", from what the programs printed."""

import json
import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ANSWERS = FOLDER / "answers.json"
PAGE = FOLDER.parents[1] / "packages" / "exact_resume" / "docs" / "resuming.md"
GROUPS = {
    "boosting": "Trees and tables",
    "keras": "Keras and TensorFlow",
    "jax": "JAX",
    "streams": "Loaders of data",
    "torch": "PyTorch and its trainers",
}
"""Folder of programs -> heading."""
_INTRODUCTION = """# What resumes exactly

What libraries lose when a training is continued by their own means, and what `exact_resume` does about it. Each row is
what a small program printed on {date}: Linux, one processor, one thread, fixed seeds, data that packages ship. The
programs are in the repository's benchmarks, under `resuming`, and each can be run on its own.

- *equal*: the end has the bits of an uninterrupted run
- a number: how far a prediction, a weight or a rate is from the uninterrupted run. Above 0, the end is that of another
  training, as with another seed; no library reported it.
- a text: what is lost, or that the library refuses to continue

[Does it resume?](rehearsal.md) tries your own training.
"""


def rows() -> dict[str, dict[str, Any]]:
    """Return the rows by name: program, thread, answer of exact_resume, and expected cases."""
    return tomllib.loads((FOLDER / "rows.toml").read_text(encoding="utf-8"))


def rounded(case: float | str) -> float | str:
    """Return a difference to one digit; texts as they are."""
    return case if isinstance(case, str) else float(f"{case:.0e}")


def differences(expected: dict[str, Any], cases: dict[str, Any]) -> list[str]:
    """Return in which cases a program saw something else than the source of the page states.

    The size of a difference may vary with the processor, by a factor of 5; whether there is one may not.
    """
    found = [f"{name!r} is stated and was not seen" for name in expected.keys() - cases.keys()]
    for name, case in cases.items():
        stated = expected.get(name, "nothing")
        if isinstance(stated, str) or isinstance(case, str) or not stated or not case:
            is_same = stated == case
        else:
            is_same = stated / 5 < case < stated * 5
        if not is_same:
            found.append(f"{name!r} is {rounded(case)!r}; stated is {stated!r}")
    return found


def _entry(text: str) -> str:
    options: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}
    return textwrap.fill(text, 120, initial_indent="- ", subsequent_indent="  ", **options)


def _row(name: str, row: dict[str, Any], answer: dict[str, Any]) -> str:
    cases = {key: rounded(case) for key, case in answer["cases"].items()}
    equal = [key for key, case in cases.items() if case == 0]
    gaps = [f"{key} ({case:g})" for key, case in cases.items() if isinstance(case, float) and case]
    versions = ", ".join(f"{key} {value.partition('+')[0]}" for key, value in answer["versions"].items())
    owner, project, _, number = re.fullmatch(
        r"https://github\.com/(.+)/(.+)/(issues|pull)/(\d+)", row["asked"]
    ).groups()  # type: ignore[union-attr]
    lines = [f"### {answer['library']}: {answer['continued']}", ""]
    lines += [_entry(f"equal: {'; '.join(equal)}")] if equal else []
    lines += [_entry(f"not equal: {'; '.join(gaps)}")] if gaps else []
    lines += [_entry(f"{key}: {case}") for key, case in cases.items() if isinstance(case, str)]
    lines += [_entry(f"exact_resume: {row['exact_resume']}")]
    source = f"{versions}; `{row['program'].split()[0]}`; asked in [{owner}/{project}#{number}]({row['asked']})"
    return "\n".join([*lines, _entry(source), ""])


def written(recorded: dict[str, Any]) -> str:
    """Return the page.

    Args:
        recorded: Date, and what each program printed by name of its row.
    """
    stated, parts = rows(), [_INTRODUCTION.format(date=recorded["date"])]
    for folder, heading in GROUPS.items():
        names = [name for name, row in stated.items() if row["program"].startswith(f"{folder}/")]
        parts += [f"## {heading}\n", *(_row(name, stated[name], recorded["rows"][name]) for name in names)]
    return "\n".join(parts)


def recorded() -> dict[str, Any]:
    """Return the recorded answers."""
    found: dict[str, Any] = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return found
