"""`[step.NAME] bigquery`: a step's queries and tables get the rows of the user's files; nothing else is answered."""

import datetime
import json
import subprocess
import sys
import tomllib
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

import localvertex
from localvertex._base.userinput.errors import UserError
from localvertex.credentials.isolation import NoCredentials
from localvertex.credentials.step_python import localvertex_bigquery
from localvertex.runner import engine
from localvertex.values.configuration import Configuration
from vertex_testing.runs import STEP, Command, Compile, FindTask


@dsl.component(**STEP)
def load(project: str) -> str:
    from google.cloud import bigquery

    client = bigquery.Client(project=project)
    query = f"""
        SELECT fare, day
        FROM `{project}.taxi.trips`
        WHERE fare > 1
    """
    found = [[dict(row) for row in client.query(query).result(page_size=1)]]
    found.append([dict(row) for row in client.query_and_wait(query)])
    return str([*found, [tuple(row.values()) for row in client.list_rows("p.taxi.zones")]])


@dsl.pipeline(name="rows")
def pipeline(project: str = "p") -> None:
    load(project=project)


QUERY = "SELECT fare, day FROM `p.taxi.trips` WHERE fare > 1"


@pytest.mark.slow
def test_files_of_rows_are_proposed_by_name_and_answer_the_step(
    compiled: Compile, command: Command, task: FindTask, tmp_path: Path, work_dir: Path
) -> None:
    compiled(pipeline)
    (tmp_path / "trips.jsonl").write_text('{"fare": 2.5, "day": "2020-01-02"}\n{"fare": 3}\n')
    (tmp_path / "zones.csv").write_text("zone,name\n007,\n1,north\n")
    file, names = tmp_path / "localvertex.toml", ["trips.jsonl", "zones.csv"]
    for number, name in enumerate([QUERY, "p.taxi.zones"]):
        done = command("run", "pipeline.json", "--run-id", f"r{number}")
        block = done.stdout.partition("run the file again:\n\n")[2].partition("\n\nresume")[0]
        table = tomllib.loads(block)["step"]["load"]
        assert (done.returncode, [*table]) == (1, ["bigquery"]), done.stdout
        assert table["bigquery"] == {name: "path/to/file"} | ({QUERY: names[0]} if number else {})
        file.write_text(block.replace("path/to/file", names[number]))
    done = command("run", "pipeline.json", "--run-id", "last")
    assert done.returncode == 0, done.stdout
    record = json.loads((work_dir / "last" / "run.json").read_text())
    rows = [{"fare": 2.5, "day": datetime.date(2020, 1, 2)}, {"fare": 3.0, "day": None}]
    expected = str([rows, rows, [("007", None), ("1", "north")]])
    assert task(record, "load")["outputs"]["parameters"]["Output"] == expected
    assert not [text for text in record["warnings"] if "calls BigQuery" in text]
    # The rows may change, so the step does not come from the cache.
    (tmp_path / "zones.csv").write_text("zone,name\n")
    assert command("run", "pipeline.json", "--run-id", "again").returncode == 0
    record = json.loads((work_dir / "again" / "run.json").read_text())
    assert task(record, "load")["outputs"]["parameters"]["Output"] == str([rows, rows, []])


def asked(tmp_path: Path, files: dict[str, str], *calls: str) -> list[str]:
    """Return what calls of a client print, one line each, in a process as a step's; none looks a name up."""
    (tmp_path / "bigquery.json").write_text(json.dumps({"files": files}))
    program = (
        "import sys; sys.addaudithook(lambda event, args: event == 'socket.getaddrinfo' and sys.exit(9))\n"
        "from google.cloud import bigquery; client = bigquery.Client(project='p')\n"
        "PARAMETER = bigquery.ScalarQueryParameter('a', 'INT64', 1)\n"
        "for call in sys.argv[1:]:\n"
        "    try: print(eval(call))\n"
        "    except Exception as error: print(type(error).__name__, ' '.join(str(error).split()))\n"
    )
    with closing(NoCredentials()) as credentials:
        env = credentials.environment({localvertex_bigquery.VARIABLE: str(tmp_path / "bigquery.json"), "PATH": ""})
    done = subprocess.run([sys.executable, "-c", program, *calls], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_no_file_is_named_for_is_refused_and_noted(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n2\n")
    refused = [
        'client.query("SELECT a FROM p.taxi.trips").result()',
        'client.get_table("p.other.trips")',
        'client.query("SELECT 1", bigquery.QueryJobConfig(query_parameters=[PARAMETER])).result()',
        'client.load_table_from_json([{"a": 1}], "p.taxi.trips")',
        'client.create_dataset("d")',
    ]
    answered = [
        'client.get_table("taxi.trips").num_rows',
        '[*client.query("select * from `p.taxi.trips` limit 1")]',
    ]
    lines = asked(tmp_path, {"taxi.trips": str(tmp_path / "rows.csv")}, *refused, *answered)
    assert [each.partition(" ")[0] for each in lines[:5]] == ["MethodNotImplemented"] * 5, lines
    assert all("was not sent" in each and "[step.NAME] bigquery" in each for each in lines[:5])
    assert lines[5:] == ["2", "[Row((1,), {'a': 0})]"]
    missing = json.loads((tmp_path / "bigquery.json").read_text())["missing"]
    assert missing == ["SELECT a FROM p.taxi.trips", "p.other.trips"]


def test_rows_have_the_types_of_their_file(tmp_path: Path) -> None:
    # Steps that read Parquet have it; an environment with localvertex alone need not.
    pytest.importorskip("pyarrow")
    from pyarrow import Table, parquet

    now = datetime.datetime(2020, 1, 2, 3, 4, 5, 600, tzinfo=datetime.UTC)
    values: dict[str, Any] = {"text": "1", "n": 2**53 + 1, "ok": True, "at": now, "d": Decimal("1.50"), "raw": b"\0x"}
    parquet.write_table(Table.from_pylist([values, dict.fromkeys(values)]), tmp_path / "rows.parquet")
    (tmp_path / "t.csv").write_text('a,b,c,d\n-1,1e3,2020-01-02 03:04:05 UTC,"x,\ny"\n,.5,,\n')
    (tmp_path / "mixed.jsonl").write_text('{"a": 1}\n{"a": "x"}\n')
    (tmp_path / "nested.jsonl").write_text('{"a": [1]}\n')
    (tmp_path / "short.csv").write_text("a,b\n1\n")
    files = {f"d.{each.stem}": str(each) for each in tmp_path.iterdir()}
    names = ("rows", "t", "mixed", "nested", "short")
    rows, table, *refused = asked(
        tmp_path, files, *(f'[dict(each) for each in client.list_rows("d.{each}")]' for each in names)
    )
    assert eval(rows, {"datetime": datetime, "Decimal": Decimal}) == [values, dict.fromkeys(values)]
    assert eval(table, {"datetime": datetime})[0] == {
        "a": -1,
        "b": "1e3",
        "c": now.replace(microsecond=0),
        "d": "x,\ny",
    }
    assert "'a' has INTEGER and STRING" in refused[0]
    assert "'a' has nested" in refused[1]
    assert "another number of columns" in refused[2]


def test_a_file_that_is_not_there_or_has_no_known_form_is_refused(compiled: Compile, tmp_path: Path) -> None:
    compiled(pipeline)
    (tmp_path / "rows.xlsx").touch()
    for name in ("gone.csv", "rows.xlsx"):
        found = Configuration(step={"load": {"bigquery": {"d.t": str(tmp_path / name)}}})
        with pytest.raises(UserError, match=rf"{name}.* expected a file that is here, \.csv"):
            engine.open_file(tmp_path / "pipeline.json", localvertex.Options(configuration=found))
