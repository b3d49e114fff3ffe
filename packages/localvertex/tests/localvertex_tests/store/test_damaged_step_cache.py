"""A damaged record of the step cache: one line, the step runs again, and the run is as without a cache."""

import copy
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from kfp.dsl import Dataset, Input, Output

from localvertex.credentials.secrets import Secrets
from localvertex.store import record
from localvertex.store.steps import cache as step_cache
from localvertex.values.buckets import Buckets
from vertex_testing.runs import STEP, Command, Execute

NUM_MUTATIONS = 1600
Change = Callable[[dict[str, Any]], object]


@dsl.component(**STEP)
def write(text: str, out: Output[Dataset]) -> dict:
    with open(out.path, "w") as file:
        file.write(text)
    out.metadata["rows"] = 3
    return {"text": text, "numbers": [1, 2.5, None, True], "empty": {}}


@dsl.component(**STEP)
def read(data: Input[Dataset], value: dict) -> int:
    return value["numbers"][0]


@dsl.pipeline(name="damaged-cache")
def damaged_cache(text: str = "some text") -> None:
    written = write(text=text)
    read(data=written.outputs["out"], value=written.outputs["Output"])


def entries(work_dir: Path) -> list[Path]:
    return sorted((work_dir / ".localvertex" / "cache").glob("*.json"))


def same(content: dict[str, Any]) -> bytes:
    """Return the text of a record."""
    return json.dumps(content, indent=1).encode()


def changed(change: Change) -> Callable[[dict[str, Any]], bytes]:
    """Return what writes a record after a change."""

    def text(content: dict[str, Any]) -> bytes:
        change(content)
        return same(content)

    return text


def of_artifacts(change: Change) -> Callable[[dict[str, Any]], bytes]:
    """Return what writes a record after a change of each of its artifacts."""
    return changed(lambda it: [change(each) for artifacts in it["artifacts"].values() for each in artifacts])


DAMAGES: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "no artifacts": changed(lambda it: it.update(artifacts=None)),
    "artifacts is a list": changed(lambda it: it.update(artifacts=["q"])),
    "parameters is a list": changed(lambda it: it.update(parameters=["q"])),
    "parameters is a number": changed(lambda it: it.update(parameters=7)),
    "a list": lambda it: b"[]",
    "a number": lambda it: b"7",
    "null": lambda it: b"null",
    "empty": lambda it: b"",
    "an empty object": lambda it: b"{}",
    "torn": lambda it: same(it)[:40],
    "100,000 brackets": lambda it: b"[" * 100_000,
    "100,000 pairs of brackets": lambda it: b"[" * 100_000 + b"]" * 100_000,
    "100,000 brackets as metadata": lambda it: same(it).replace(b'"rows": 3', b'"rows": ' + b"[" * 100_000),
    "no parameters": changed(lambda it: it.pop("parameters")),
    "an unknown parameter": changed(lambda it: it["parameters"].update(more="x")),
    "a parameter of another type": changed(lambda it: it["parameters"].update(dict.fromkeys(it["parameters"], "q"))),
    "a huge number": changed(lambda it: it["parameters"].update(dict.fromkeys(it["parameters"], 10**400))),
    "a number that Python does not read": lambda it: same(it).replace(b"1", b"1" * 10_000, 1),
    "artifacts that are numbers": changed(lambda it: it.update(artifacts={"out": [7]})),
    "artifacts without a list": changed(lambda it: it.update(artifacts={"out": {"uri": "x"}})),
    "an artifact without a type": of_artifacts(lambda each: each.pop("type")),
    "an artifact whose type is a text": of_artifacts(lambda each: each.update(type="system.Dataset")),
    "an artifact whose type is null": of_artifacts(lambda each: each.update(type=None)),
    "an artifact without an address": of_artifacts(lambda each: each.pop("uri")),
    "an artifact whose address is a number": of_artifacts(lambda each: each.update(uri=7)),
    "an artifact with NUL in its address": of_artifacts(lambda each: each.update(uri="/a\0b")),
    "an artifact whose metadata is a list": of_artifacts(lambda each: each.update(metadata=["q"])),
    "an artifact without a name": of_artifacts(lambda each: each.pop("name")),
    "not UTF-8": lambda it: same(it).replace(b"some text", b"\xff\xfe") + b"\xff",
    "NUL": lambda it: b"\0" * 4096,
    "keys that are repeated": lambda it: same(it).replace(b'"parameters"', b'"parameters": {}, "parameters"', 1),
    "infinite": lambda it: same(it).replace(b"2.5", b"1e999").replace(b": 3", b": NaN").replace(b": 1", b": -Infinity"),
}


@pytest.fixture
def cached(execute: Execute) -> dict[str, Any]:
    """Return the record of a run whose steps are in the step cache."""
    made = execute(damaged_cache, run_id="first")
    assert made["state"] == "SUCCEEDED"
    return made


def outcome(made: dict[str, Any]) -> list[Any]:
    """Return the paths and values of all steps, without the identities of artifacts."""
    return [(each["path"], each["outputs"]["parameters"], [*each["outputs"]["artifacts"]]) for each in made["tasks"]]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_one_line_and_the_step_runs_again(
    execute: Execute, work_dir: Path, cached: dict[str, Any], damage: str, command: Command
) -> None:
    for path in entries(work_dir):
        path.write_bytes(DAMAGES[damage](json.loads(path.read_text())))
    again = execute(damaged_cache, run_id="again")
    assert outcome(again) == outcome(cached)
    assert again["state"] == "SUCCEEDED"
    told = [text for text in again["warnings"] if "step cache" in text]
    assert told
    assert all("\n" not in text and "is damaged; the step runs again" in text for text in told)
    # What is on the disk is a whole record, which every command reads.
    assert record.read(work_dir / "again")["state"] == "SUCCEEDED"
    assert command("show", "again", "--work-dir", str(work_dir)).returncode == 0
    third = execute(damaged_cache, run_id="third")
    assert [each["state"] for each in third["tasks"]] == ["SKIPPED", "SKIPPED"]
    assert not [text for text in third["warnings"] if "step cache" in text]


def mutated(text: bytes, rng: random.Random) -> bytes:
    """Return a record with one to three changes of bytes, or of a value at any depth."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text)) if text else 0
        until = min(at + rng.randint(1, 60), len(text))
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
        elif kind == 1:
            text = text[:at]
        elif kind == 2:
            text = text[:at] + text[until:]
        elif kind == 3:
            text = text[:until] + text[at:until] + text[until:]
        elif kind == 4:
            odd = (
                b"null",
                b"[",
                b"{}",
                b"1e400",
                b"9" * 5000,
                b"\0",
                b'"q"',
                b"[[[",
                b"\xff",
                b"-",
                b'"\\ud800"',
                b"true",
            )
            text = text[:at] + rng.choice(odd) + text[until:]
        else:
            text = with_another_value(text, rng)
    return text


def with_another_value(text: bytes, rng: random.Random) -> bytes:
    """Return a record in which one value is replaced, or one key is missing; as it is if it is no JSON."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return text
    outer, level = None, content
    while isinstance(level, dict | list) and level and (outer is None or rng.random() < 0.7):
        key = rng.choice(list(level)) if isinstance(level, dict) else rng.randrange(len(level))
        outer, level = (level, key), level[key]
    if outer is None:
        return text
    if rng.random() < 0.2:
        del outer[0][outer[1]]
    else:
        outer[0][outer[1]] = rng.choice([None, 7, -1.5, "q", [], {}, ["q"], {"q": 1}, True, 10**30, "\0", [[]]])
    return json.dumps(content).encode()


@pytest.mark.usefixtures("cached")
def test_whatever_happens_to_a_record_it_is_the_same_or_damaged(work_dir: Path) -> None:
    rng = random.Random(9)
    num_damaged = 0
    for path in entries(work_dir):
        original, key = path.read_bytes(), path.stem
        whole = step_cache.look_up(work_dir, key, Buckets(), pytest.fail)
        assert whole is not None
        expected = copy.deepcopy(whole)
        for number in range(NUM_MUTATIONS // 2):
            path.write_bytes(mutated(original, rng))
            told: list[str] = []
            found = step_cache.look_up(work_dir, key, Buckets(), told.append)
            # Only what JSON does not distinguish, such as spaces, is no damage.
            assert (found == expected, len(told)) in [(True, 0), (False, 1)], (number, path.read_bytes())
            num_damaged += len(told)
            step_cache.remove_secrets(work_dir, "first", Secrets())
        path.write_bytes(original)
    assert num_damaged > 0.9 * NUM_MUTATIONS


@pytest.mark.usefixtures("cached")
def test_a_damaged_record_does_not_stop_the_removal_of_late_secrets(work_dir: Path) -> None:
    damaged, whole = sorted(entries(work_dir), key=lambda each: "some text" in each.read_text())
    damaged.write_bytes(b"[" * 100_000)
    # As a record that another run removes between the list and the read.
    whole.with_name("removed.json").symlink_to("nowhere")
    secrets = Secrets()
    secrets.learn({"MY_TOKEN": "some text"})
    step_cache.remove_secrets(work_dir, "first", secrets)
    assert not whole.exists()
    assert damaged.read_bytes() == b"[" * 100_000


@pytest.mark.usefixtures("cached")
def test_a_record_that_is_larger_than_the_memory_is_damaged(execute: Execute, work_dir: Path) -> None:
    for path in entries(work_dir):
        # A damaged file system can give a file any length.
        with path.open("wb") as file:
            file.truncate(1 << 40)
    again = execute(damaged_cache)
    assert again["state"] == "SUCCEEDED"
    assert any("larger than 2 GiB" in text for text in again["warnings"])


@pytest.mark.usefixtures("cached")
def test_a_removed_run_is_not_reported(execute: Execute, work_dir: Path) -> None:
    shutil.rmtree(work_dir / "first")
    again = execute(damaged_cache)
    assert not [text for text in again["warnings"] if "step cache" in text]
