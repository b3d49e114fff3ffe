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
from google_cloud_pipeline_components.v1.custom_job import create_custom_training_job_from_component
from kfp import dsl

import localvertex
from localvertex._base.userinput.errors import UserError
from localvertex.credentials.isolation import NoCredentials
from localvertex.credentials.step_python import localvertex_bigquery
from localvertex.runner import engine
from localvertex.store import executor_files
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
    """Those that can be read off the code together with the first that was missing."""
    compiled(pipeline)
    (tmp_path / "trips.jsonl").write_text('{"fare": 2.5, "day": "2020-01-02"}\n{"fare": 3}\n')
    (tmp_path / "zones.csv").write_text("zone,name\n007,\n1,north\n")
    done = command("run", "pipeline.json", "--run-id", "first")
    block = done.stdout.partition("run the file again:\n\n")[2].partition("\n\nresume")[0]
    assert done.returncode == 1, done.stdout
    assert tomllib.loads(block)["step"]["load"] == {"bigquery": dict.fromkeys([QUERY, "p.taxi.zones"], "path/to/file")}
    named = block.replace("path/to/file", "trips.jsonl", 1).replace("path/to/file", "zones.csv")
    (tmp_path / "localvertex.toml").write_text(named)
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
    (tmp_path / "bigquery.json").write_text(json.dumps(files))
    program = (
        "import sys; sys.addaudithook(lambda event, args: event == 'socket.getaddrinfo' and sys.exit(9))\n"
        "from google.cloud import bigquery; client = bigquery.Client(project='p')\n"
        "PARAMETER = bigquery.ScalarQueryParameter('a', 'INT64', 1)\n"
        "for call in sys.argv[1:]:\n"
        "    try: print(eval(call))\n"
        "    except Exception as error: print(type(error).__name__, ' '.join(str(error).split()))\n"
    )
    with closing(NoCredentials()) as credentials:
        env = credentials.environment({localvertex_bigquery.VARIABLE: str(tmp_path), "PATH": ""})
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
    noted = [each["rows"] for each in executor_files.refused_calls(tmp_path)]
    assert [*filter(None, noted)] == ["SELECT a FROM p.taxi.trips", "p.other.trips"]


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


@dsl.component(**STEP)
def read(source: str, text: str, limit: int = 5) -> None:
    from google.cloud import bigquery

    client = bigquery.Client()
    for name in ("first", "second"):
        client.query(f"SELECT * FROM `{source}.{name}` -- of {limit}")
    query = "SELECT MAX(a) FROM `{}.{name}`".format(source, name="a") + " WHERE a > 1"
    client.query_and_wait(query=query)
    client.query(text).to_dataframe().query("a > 1")
    client.get_table("d.t")
    client.query(open("query.sql").read())


@dsl.component(**STEP)
def reads_late() -> None:
    from google.cloud import bigquery

    bigquery.Client().query(open("query.sql").read())


@dsl.component(**STEP)
def writes() -> None:
    from google.cloud import bigquery

    bigquery.Client().load_table_from_json([{"a": 1}], "d.t")


@dsl.pipeline(name="reads")
def reads(project: str, missing: str) -> None:
    with dsl.ParallelFor(["x", "y"]) as table:
        read(source=f"{project}.d", text=f"SELECT 1 FROM `{project}.{table}`")
    reads_late()
    writes()
    read(source="p.late", text=missing)


def test_the_first_refusal_proposes_files_for_what_the_code_asks_for(compiled: Compile) -> None:
    """A step that no file helps is given; one whose queries are not known names them when it asks."""
    with pytest.raises(localvertex.Refused) as refused:
        engine.check(compiled(reads), parameters={"project": "p"}, options=localvertex.Options())
    tables = tomllib.loads(refused.value.proposal)
    common = {"SELECT MAX(a) FROM `%s.a` WHERE a > 1", "SELECT * FROM `%s.first` -- of 5"}
    common |= {"SELECT * FROM `%s.second` -- of 5", "d.t"}
    texts = {"SELECT 1 FROM `p.x`", "SELECT 1 FROM `p.y`"}
    assert tables["parameters"] == {"missing": "text"}
    assert {*tables["step"]} == {"for-loop-2/read", "read-2", "writes"}
    assert tables["step"]["writes"] == {"outputs": {}}
    found = {name: {*table["bigquery"]} for name, table in tables["step"].items() if "bigquery" in table}
    assert found["for-loop-2/read"] == texts | {each.replace("%s", "p.d") for each in common}
    assert found["read-2"] == {each.replace("%s", "p.late") for each in common}


@dsl.component(**STEP)
def train() -> None:
    from google.cloud import bigquery

    assert [tuple(row.values()) for row in bigquery.Client().query(open("/dev/null").read() + "SELECT a FROM d.t")]


@pytest.mark.slow
def test_a_replica_gets_its_rows_as_a_step_does(compiled: Compile, command: Command, tmp_path: Path) -> None:
    replicas = create_custom_training_job_from_component(train, machine_type="n1-standard-4", replica_count=2)

    @dsl.pipeline(name="trains")
    def trains() -> None:
        replicas(project="p")

    compiled(trains)
    (tmp_path / "rows.csv").write_text("a\n1\n")
    done = command("run", "pipeline.json")
    block = done.stdout.partition("run the file again:\n\n")[2].partition("\n\nresume")[0]
    assert tomllib.loads(block)["step"]["train"] == {"bigquery": {"SELECT a FROM d.t": "path/to/file"}}, done.stdout
    (tmp_path / "localvertex.toml").write_text(block.replace("path/to/file", "rows.csv"))
    done = command("run", "pipeline.json")
    assert done.returncode == 0, done.stdout
