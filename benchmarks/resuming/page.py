"""The pages "What resumes exactly" and "Pixels", from what the programs printed."""

import json
import textwrap
import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ANSWERS = FOLDER / "answers.json"
RESUMING = FOLDER.parents[1] / "packages" / "exact_resume" / "docs" / "resuming.md"
PIXELS = FOLDER.parents[1] / "docs" / "pixels.md"
GROUPS = {
    "boosting": "Trees and tables",
    "keras": "Keras and TensorFlow",
    "jax": "JAX",
    "streams": "Loaders of data",
    "torch": "PyTorch and its trainers",
}
"""Folder of programs -> heading on the page of what resumes."""
_ABOUT_PIXELS = """# Pixels

Whether libraries read and resize an image file to the same pixels. A model that is trained on the pixels of one and
gets those of another sees images that it has not learned. Each table is what a small program in
`benchmarks/resuming/pixels` printed on {date}, with one photograph of scikit-learn: *equal*; by *up to* how many of
255 levels a value differs, then on average; another type or shape; or an error.
"""
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


def entry(text: str) -> str:
    """Return an entry of a list."""
    options: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}
    return textwrap.fill(text, 120, initial_indent="- ", subsequent_indent="  ", **options)


def link(address: str) -> str:
    """Return the link to a thread."""
    *_, owner, project, _, number = address.split("/")
    return f"[{owner}/{project}#{number}]({address})"


def _row(row: dict[str, Any], answer: dict[str, Any]) -> str:
    cases = {key: rounded(case) for key, case in answer["cases"].items()}
    equal = [key for key, case in cases.items() if case == 0]
    gaps = [f"{key} ({case:g})" for key, case in cases.items() if isinstance(case, float) and case]
    versions = ", ".join(f"{key} {value.partition('+')[0]}" for key, value in answer["versions"].items())
    lines = [f"### {answer['library']}: {answer['continued']}", ""]
    lines += [entry(f"equal: {'; '.join(equal)}")] if equal else []
    lines += [entry(f"not equal: {'; '.join(gaps)}")] if gaps else []
    lines += [entry(f"{key}: {case}") for key, case in cases.items() if isinstance(case, str)]
    lines += [entry(f"exact_resume: {row['exact_resume']}")]
    source = f"{versions}; `{row['program'].split()[0]}`; asked in {link(row['asked'])}"
    return "\n".join([*lines, entry(source), ""])


def _table(row: dict[str, Any], answer: dict[str, Any]) -> str:
    """Return a table of cases "line | column"."""
    pairs = [name.split(" | ") for name in answer["cases"]]
    lines, columns = (list(dict.fromkeys(found)) for found in zip(*pairs, strict=True))
    cells = [[answer["continued"], *columns], ["---"] * (len(columns) + 1)]
    for line in lines:
        found = [answer["cases"].get(f"{line} | {column}", "") for column in columns]
        cells.append([line, *("equal" if case == 0 else str(case) for case in found)])
    table = "\n".join(f"| {' | '.join(each)} |" for each in cells)
    versions = ", ".join(f"{key} {value}" for key, value in answer["versions"].items())
    source = textwrap.fill(f"{row['about']} {versions}; `{Path(row['program']).name}`.", 120, break_on_hyphens=False)
    return f"## {answer['library']}\n\n{source}\n\n{table}\n"


def written(recorded: dict[str, Any]) -> dict[Path, str]:
    """Return the pages.

    Args:
        recorded: Date, and what each program printed by name of its row.
    """
    stated, answers = rows(), recorded["rows"]
    parts = [_INTRODUCTION.format(date=recorded["date"])]
    for folder, heading in GROUPS.items():
        names = [name for name, row in stated.items() if row["program"].startswith(f"{folder}/")]
        parts += [f"## {heading}\n", *(_row(stated[name], answers[name]) for name in names)]
    tables = [_table(row, answers[name]) for name, row in stated.items() if row["program"].startswith("pixels/")]
    about = _ABOUT_PIXELS.format(date=recorded["date"])
    return {RESUMING: "\n".join(parts), PIXELS: "\n".join([about, *tables])}


def recorded() -> dict[str, Any]:
    """Return the recorded answers."""
    found: dict[str, Any] = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return found
