"""Shared by the proofs: parts that run until enough faults have happened, a record of them, and a dated table.

A part is one dataset, training run or release with its faults. It depends on the seed and its number alone. Each part
that has ended is a line of build/soak/PROOF-SEED-KEY.jsonl, so a killed soak resumes with the first part that has no
line. The key is made from the revision of the code, local changes included, and from the settings: other code begins
another record. The table is made from all records in the folder.
"""

import argparse
import dataclasses
import datetime
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measuring import Clock, machine, parse

_ROOT = Path(__file__).parents[2]
_COLUMNS = (
    *("proof", "seed", "revision", "machine", "settings", "begin", "load", "seconds, processor"),
    *("runs", "faults", "failures"),
)


class Fault(NamedTuple):
    """A fault that has happened."""

    kind: str
    outcome: str
    """How the processes ended."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Part:
    """A line of the record."""

    part: int
    began: str
    """Date and time, UTC."""
    seconds: float
    cpu_seconds: float
    load: tuple[float, float]
    """Load averages of a minute at its start and end."""
    faults: list[Fault]
    failure: str
    """Traceback; empty if the part ended as without faults."""


def options(
    proof: str, doc: str | None, *, num_faults: int, smoke_values: dict[str, int], examples: Sequence[str] = ()
) -> argparse.Namespace:
    """Parse the arguments of a proof; there is `--num-images` only if it has a smoke value."""
    parser = argparse.ArgumentParser(f"python -m benchmarks.soak.{proof}", description=doc)
    parser.add_argument("--num-faults", type=int, default=num_faults)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", type=int, metavar="N", help="see part N alone again, without the record")
    parser.add_argument("--output-dir", type=Path, default=_ROOT / "build" / "soak")
    if examples:
        parser.add_argument("--example", choices=examples, help="only this one")
    if "num_images" in smoke_values:
        parser.add_argument("--num-images", type=int, default=200_000)
    return parse(parser, **smoke_values)


class Soak:
    """The parts of a proof.

    Args:
        proof: Name of the proof.
        options: From `options`.
    """

    def __init__(self, proof: str, options: argparse.Namespace) -> None:
        settings = {name: value for name, value in vars(options).items() if name in ("num_images", "example", "smoke")}
        revision = _revision()
        key = hashlib.sha256(json.dumps([revision, settings]).encode()).hexdigest()[:8]
        self._name, self._output, self._options = f"{proof}-{options.seed}-{key}", options.output_dir, options
        self._about = {"proof": proof, "seed": options.seed, "revision": revision, "machine": machine(), **settings}
        work = self._output / "work" / self._name
        # Those of a killed soak. Its processes may still write there.
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(dir=work))
        """For the files of the proof; removed at the end."""

    def run(self, disturb: Callable[[int], Sequence[Fault]]) -> int:
        """Run parts until there are enough faults.

        Args:
            disturb: Runs a part, given its number, and returns its faults; raises an exception if it ends otherwise
                than without them.

        Returns:
            Exit code: 1 if a part ended otherwise.
        """
        try:
            if self._options.part is not None:
                return int(bool(self._part(self._options.part, disturb).failure))
            return self._run(disturb)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self, path: Path, number: int) -> None:
        """Keep the files of a part that failed."""
        kept = self._output / "failed" / f"{self._name}-{number}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(path, kept, symlinks=True)
        print(f"the files of part {number} are kept in {kept}", flush=True)

    def _run(self, disturb: Callable[[int], Sequence[Fault]]) -> int:
        path = self._output / f"{self._name}.jsonl"
        parts = [_Part(**line) for line in _lines(path)[1:]]
        if parts:
            print(f"{path} has {len(parts)} finished parts, which are skipped", flush=True)
        else:
            path.write_text(json.dumps(self._about) + "\n")
        # A failed part counts as a fault, or a proof that always fails would never end.
        while sum(len(part.faults) + bool(part.failure) for part in parts) < self._options.num_faults:
            parts.append(self._part(len(parts), disturb))
            _append(path, json.dumps(dataclasses.asdict(parts[-1])))
            _write_table(self._output)
        table = _write_table(self._output)
        failed = sum(bool(part.failure) for part in parts)
        print(
            f"{self._about['proof']}: {sum(len(part.faults) for part in parts)} faults in {len(parts)} runs, {failed}"
            f" failed; {sum(part.seconds for part in parts):,.0f} s, processor"
            f" {sum(part.cpu_seconds for part in parts):,.0f} s; see {table}",
            flush=True,
        )
        return int(failed > 0)

    def _part(self, number: int, disturb: Callable[[int], Sequence[Fault]]) -> _Part:
        began, load, clock = datetime.datetime.now(datetime.UTC), os.getloadavg()[0], Clock()
        faults: Sequence[Fault] = ()
        failure = ""
        try:
            faults = disturb(number)
        except Exception:
            failure = traceback.format_exc()
        took = clock.took()
        happened = ", ".join(f"{fault.kind} ({fault.outcome})" for fault in faults) or "no fault"
        print(f"part {number}: {happened}; {'FAILED' if failure else 'equal'}, {took}\n{failure}", end="", flush=True)
        return _Part(
            part=number,
            began=began.isoformat(timespec="seconds"),
            seconds=round(took.seconds, 1),
            cpu_seconds=round(took.cpu_seconds, 1),
            load=(round(load, 1), round(os.getloadavg()[0], 1)),
            faults=list(faults),
            failure=failure,
        )


def _revision() -> str:
    """Return the commit, and a hash of local changes to it if there are any."""
    commands = (["git", "describe", "--always", "--exclude=*"], ["git", "diff", "HEAD"])
    commit, changes = (subprocess.run(each, cwd=_ROOT, capture_output=True).stdout for each in commands)
    changed = f"+{hashlib.sha256(changes).hexdigest()[:8]}" if changes else ""
    return commit.decode().strip() + changed


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of the whole lines; a kill may have torn the last one."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _append(path: Path, line: str) -> None:
    """Write a line in place of a torn one."""
    text = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(text.rfind(b"\n") + 1)
        file.truncate()
        file.write(f"{line}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def _write_table(output: Path) -> Path:
    """Write the table of all records under today's date."""
    today = datetime.datetime.now(datetime.UTC).date()
    rows, faults, failures = [], [], []
    for path in sorted(output.glob("*.jsonl")):
        about, *lines = _lines(path)
        parts = [_Part(**line) for line in lines]
        name = f"{about['proof']} | {about['seed']}"
        if parts:
            rows.append(_row(f"{name} | {about['revision']} | {about['machine']}", about, parts))
        outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        for part in parts:
            for kind, outcome in part.faults:
                outcomes[kind][outcome] += 1
            if part.failure:
                failures.append(f"- {about['proof']}, seed {about['seed']}, part {part.part}\n\n```\n{part.failure}```")
        for kind, found in sorted(outcomes.items()):
            described = "; ".join(f"{outcome} ({count})" for outcome, count in found.most_common())
            faults.append(f"| {name} | {kind} | {found.total()} | {described} |")
    blocks = [
        [f"# Soak of {today}"],
        [
            f"| {' | '.join(_COLUMNS)} |",
            "|---" * len(_COLUMNS) + "|",
            *rows,
        ],
        ["| proof | seed | fault | number | outcomes |", "|---|---|---|---|---|", *faults],
        ["Failures: none" if not failures else "Failures:", *failures],
    ]
    table = output / f"{today}.md"
    table.write_text("\n\n".join("\n".join(block) for block in blocks) + "\n")
    return table


def _row(begin: str, about: dict[str, Any], parts: list[_Part]) -> str:
    settings = [f"{about['num_images']:,} images"] if "num_images" in about else []
    settings += [about["example"]] if about.get("example") else []
    settings += ["smoke"] if about["smoke"] else []
    seconds = f"{sum(part.seconds for part in parts):,.0f}, {sum(part.cpu_seconds for part in parts):,.0f}"
    cells = [
        ", ".join(settings),
        parts[0].began,
        f"{parts[0].load[0]} at first, {parts[-1].load[1]} at the end",
        seconds,
        str(len(parts)),
        str(sum(len(part.faults) for part in parts)),
        str(sum(bool(part.failure) for part in parts)),
    ]
    return f"| {begin} | {' | '.join(cells)} |"
