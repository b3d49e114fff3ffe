"""The table of fields is complete, the reader follows it, and files prove each of its rows."""

from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.constructs import protocol
from localvertex_tests.constructs.compile import all_constructs
from localvertex_tests.constructs.construct import compiled_file, documents
from localvertex_tests.constructs.older.compile import FILES as OLDER_FILES
from localvertex_tests.constructs.page import PAGE, written

import localvertex
from localvertex._base.compiled.fields import Fields, Here, Treatment, treatments
from localvertex._base.compiled.load import load

CONSTRUCTS = all_constructs()
ROWS = {f"{row.message}.{row.field}": row for row in treatments().values()}


@pytest.fixture(scope="module")
def fields() -> dict[str, set[protocol.Field]]:
    """Return the fields that each construct, and each file of an older kfp, uses."""
    files = {name: compiled_file(name) for name in CONSTRUCTS} | {path.stem: path for path in OLDER_FILES}
    return {name: protocol.used(documents(path)) for name, path in files.items()}


def test_every_field_of_the_protocol_is_in_the_table_once() -> None:
    assert set(treatments()) == protocol.every_field()
    text = (Path(__file__).parents[3] / "localvertex" / "_base" / "compiled" / "treatment.csv").read_text()
    assert len(text.splitlines()) == len(treatments()) + 1


@pytest.mark.parametrize("name", ROWS)
def test_a_file_proves_the_row(name: str, fields: dict[str, set[protocol.Field]]) -> None:
    row = ROWS[name]
    refused = {name for name, construct in CONSTRUCTS.items() if construct.refused}
    proofs = [name for name, found in fields.items() if (row.message, row.field) in found]
    if row.here is Here.REFUSED:
        proofs = [name for name in proofs if name in refused and is_named(row, CONSTRUCTS[name].refused)]
    else:
        proofs = [name for name in proofs if name not in refused]
    assert proofs, f"no file uses {name}, which is said to be {row.here}"


def is_named(row: Treatment, refusal: str) -> bool:
    """Return whether a refusal names the field, or the refused field that it is a part of."""
    name = row.how.removeprefix("with ").strip("`") if row.how.startswith("with `") else row.field
    return name in refusal or {"lifecycle": "life-cycle"}.get(name, name) in refusal


def test_the_reader_takes_what_the_table_says_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: dict[str, set[str]] = {}
    done = Fields.finish

    def recorded(self: Fields) -> None:
        taken.setdefault(self._message, set()).update(self._known)
        done(self)

    monkeypatch.setattr(Fields, "finish", recorded)
    for path in [*map(compiled_file, CONSTRUCTS), *OLDER_FILES]:
        try:
            load(path)
        except localvertex.UserError:
            continue
    # The second document is read by `localvertex._base.compiled.platforms`, by path; the proofs above cover it.
    second = {name for name, _ in protocol._fields(protocol.PLATFORMS, set())}
    is_read = (Here.AS_ON_VERTEX, Here.DIFFERENTLY)
    expected = {key for key, row in treatments().items() if row.here in is_read and row.message not in second}
    assert expected - {(message, name) for message, names in taken.items() for name in names} == {
        ("PipelineJob.RuntimeConfig.InputArtifact", "artifactId")
    }
    assert set(taken) <= {message for message, _ in treatments()}


def edited(path: Path, tmp_path: Path, change: Any) -> Path:
    import json

    document = documents(path)[0]
    change(document)
    target = tmp_path / "edited.json"
    target.write_text(json.dumps(document))
    return target


def test_a_refused_field_with_its_default_value_is_absent(tmp_path: Path) -> None:
    path = edited(compiled_file("integers"), tmp_path, lambda d: d["root"].update(taskConfigPassthroughs=[]))
    assert load(path).pipeline.name == "integers"


def test_a_refused_field_is_refused_with_its_reason(tmp_path: Path) -> None:
    path = edited(
        compiled_file("integers"), tmp_path, lambda d: d["root"].update(taskConfigPassthroughs=[{"field": 2}])
    )
    with pytest.raises(localvertex.UserError, match=r"root\.taskConfigPassthroughs: forwards the settings of"):
        load(path)


def test_the_page_is_written_from_the_table() -> None:
    assert PAGE.read_text() == written()
