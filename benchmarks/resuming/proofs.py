"""Proves trainers by their own minimal examples: `python -m benchmarks.resuming.proofs` writes what faults cost.

Runs `localvertex prove` on each program of the folder trainers, with the environments of the rows. What each should be
found to lose was stated in stated.toml before the first run. A proof that is in build/proofs is not run again; remove
the folder to prove anew, which takes about 40 minutes. `--proof NAME` runs only this one and writes nothing.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from typing import Any

from benchmarks.resuming import page
from benchmarks.resuming.__main__ import environment

TRAINERS = page.FOLDER / "trainers"
RECORDED = page.FOLDER / "proofs.json"
PAGE = page.FOLDER.parents[1] / "packages" / "localvertex" / "docs" / "trainers.md"
_FOLDER = page.FOLDER.parents[1] / "build" / "proofs"
KILLS = ("killed-early", "killed-in-the-middle")
FAULTS = (*KILLS, "torn-checkpoint", "sigterm", "notice", "bit-flipped")
_COST = {
    "examples_repeated": "examples repeated",
    "examples_never_seen": "examples never seen",
    "steps_lost": "steps run again",
    "steps_missing": "steps never logged",
}
_INTRODUCTION = """# What a fault costs a trainer

[`prove`](prove.md) on the smallest program of each trainer, which saves and resumes by the trainer's own means, on
{date}: Linux, one process, no GPU, seed 0. The programs are in the repository's benchmarks, under
`resuming/trainers`, and each needs only its library. `prove --fault NAME` on one repeats a cell, and `--reproducer`
writes it for the trainer's maintainer. A seed is one moment of each fault: *equal* is no promise for another moment.
"""
_DEFECTS = """## Public defects

Written from their reports, and listed with the cause that `prove` should name, before it ran.
In the first run it named the order of the data alone for verl#7401, whose next epoch is left out, and was repaired. One
cause can hide another.

"""


def stated() -> dict[str, dict[str, Any]]:
    """Return the programs by name: title, environment, and the causes that were expected before the first run."""
    return tomllib.loads((TRAINERS / "stated.toml").read_text(encoding="utf-8"))


def recorded() -> dict[str, Any]:
    """Return the recorded proofs."""
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def written(found: dict[str, Any]) -> str:
    """Return the page."""
    about, proofs = stated(), found["proofs"]
    trainers = [name for name, row in about.items() if "trainer" in row]
    cells = [["fault", *(about[name]["trainer"] for name in trainers)], ["---"] * (len(trainers) + 1)]
    for fault in FAULTS:
        cells.append([f"`{fault}`", *(_verdict(proofs[name]["faults"], fault) for name in trainers)])
    table = "\n".join(f"| {' | '.join(each)} |" for each in cells) + "\n"
    parts = [_INTRODUCTION.format(date=found["date"]), table]
    for name in trainers:
        parts += [f"## {about[name]['trainer']}: {about[name]['how']}\n", _details(name, about[name], proofs[name])]
    lines = [_DEFECTS + "\n".join(_defect(name, row, proofs[name]) for name, row in about.items() if "defect" in row)]
    return "\n".join([*parts, *lines]) + "\n"


def _verdict(faults: list[dict[str, Any]], name: str) -> str:
    return next((each["verdict"] for each in faults if each["fault"] == name), "")


def _details(name: str, row: dict[str, Any], proof: dict[str, Any]) -> str:
    lines = []
    for fault in proof["faults"]:
        if fault["verdict"].startswith("equal") and not fault["reason"]:
            continue
        cost = [f"{words}: {fault[key]}" for key, words in _COST.items() if fault[key]]
        causes = ", ".join(fault["causes"]) or "no cause named" * (fault["verdict"] == "different")
        text = "; ".join(each for each in (causes, *cost, fault["reason"]) if each)
        lines.append(page.entry(f"{fault['fault']}: {fault['verdict']}: {text}".removesuffix(": ")))
    asked = f"; asked in {page.link(row['asked'])}" if "asked" in row else ""
    expected = (
        f"expected before the run: {', '.join(row['expected'])}{asked}"
        if row["expected"]
        else "expected before the run: nothing, because no report was known"
    )
    lines += [page.entry(expected), page.entry(f"{_versions(proof)}; `{name}.py`")]
    return "\n".join(lines) + "\n"


def _versions(proof: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value.partition('+')[0]}" for key, value in proof["versions"].items())


def _defect(name: str, row: dict[str, Any], proof: dict[str, Any]) -> str:
    found = [f"{each['fault']}: {', '.join(each['causes']) or each['verdict']}" for each in proof["faults"]]
    return page.entry(
        f"{row['defect']}, {page.link(row['asked'])}; expected: {' or '.join(row['expected'])}; found: "
        f"{'; '.join(found)} ({_versions(proof)}; `{name}.py`)"
    )


def _proof(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a proof; run it unless it is there."""
    path, python = _FOLDER / f"{name}.json", environment(row["environment"])
    if not path.exists():
        _FOLDER.mkdir(parents=True, exist_ok=True)
        faults = [word for each in (FAULTS if "trainer" in row else KILLS) for word in ("--fault", each)]
        words = [sys.executable, "-m", "localvertex", "prove", "--work-dir", str(_FOLDER / "runs"), *faults]
        words += ["--json", str(path), "--", python, str(TRAINERS / f"{name}.py")]
        threads = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "-1"}
        subprocess.run(words, env=os.environ | threads, check=False)
    (proof,) = json.loads(path.read_text(encoding="utf-8"))
    listing = f"import importlib.metadata as m; print(*map(m.version, {row['packages']!r}))"
    versions = subprocess.run([python, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    kept = ("fault", "verdict", "causes", "exit_codes", *_COST)
    kept_faults = [
        {**{key: each[key] for key in kept}, "reason": _without_paths(each["reason"])} for each in proof["faults"]
    ]
    return {"versions": dict(zip(row["packages"], versions, strict=True)), "faults": kept_faults}


def _without_paths(text: str) -> str:
    """Return a text without the folders of this machine and the name of the replica."""
    text = re.sub(r"/\S*/output/", "", text.removeprefix("workerpool0-0: "))
    return textwrap.shorten(text, 200, placeholder=" ...")


def main() -> int:
    """Prove; return 1 if a program of a public defect is not accused of one of its causes."""
    parser = argparse.ArgumentParser("python -m benchmarks.resuming.proofs", description=__doc__)
    parser.add_argument("--proof", choices=list(stated()), help="only this program")
    options = parser.parse_args()
    about = {name: row for name, row in stated().items() if options.proof in (None, name)}
    proofs = {name: _proof(name, row) for name, row in about.items()}
    missed = [name for name, row in about.items() if "defect" in row and not is_found(row, proofs[name])]
    for name in missed:
        print(f"{name}: none of {about[name]['expected']} was found")
    if options.proof is None:
        found = {"date": str(datetime.datetime.now(datetime.UTC).date()), "proofs": proofs}
        RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(written(found), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(page.FOLDER.parents[1])}")
    return int(bool(missed))


def is_found(row: dict[str, Any], proof: dict[str, Any]) -> bool:
    """Return whether each fault has one of the expected causes among those that are named."""
    return all({*each["causes"]} & {*row["expected"]} for each in proof["faults"])


if __name__ == "__main__":
    sys.exit(main())
