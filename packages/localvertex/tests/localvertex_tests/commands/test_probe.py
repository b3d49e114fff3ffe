"""`localvertex probe`: what it records is the table's, no value leaves it, and it starts nothing in a cloud."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from localvertex_tests.commands import probe_pipeline

from localvertex.probe import command, program as recording, record
from localvertex.probe.record import FORMAT, Record
from localvertex.runner.engine import open_file
from localvertex.values.facts import OF_THIS_MACHINE, VARIABLES, facts

SECRET, CAPITALS = "hunter2-of-the-user", "HUNTER_OF_THE_USER"
Run = Callable[..., subprocess.CompletedProcess[str]]


def probe(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "80", "PROBE_TEST_NOTE": SECRET, "DB_PASSWORD": SECRET}
    line = [sys.executable, "-m", "localvertex", "probe", *words]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def page(package: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The commands of docs/fidelity.md, in a folder; the record from Vertex AI is the one from here, renamed."""
    folder = tmp_path_factory.mktemp("probe")
    text = (package / "docs" / "fidelity.md").read_text()
    done = {}
    for line in text.partition("```sh\n")[2].partition("```")[0].splitlines():
        done[line] = probe(folder, *shlex.split(line)[4:])
        assert done[line].returncode == 0, (line, done[line].stdout, done[line].stderr)
        if line.endswith("run"):
            content = json.loads((folder / "HERE.json").read_text()) | {"place": "Vertex AI"}
            (folder / "probe").write_text(json.dumps(content))
        if line.endswith("collect probe"):
            assert not (folder / "THEIRS.json").exists()
    return folder, done


@pytest.fixture(scope="module")
def here(page: tuple[Path, Any]) -> Record:
    """The record of a real run."""
    return record.read(page[0] / "HERE.json")


@pytest.mark.slow
@pytest.mark.parametrize("fact_id", record.recorded())
def test_the_probe_records_what_the_table_has(here: Record, fact_id: str) -> None:
    expected = facts()[fact_id].here
    assert fact_id in here.values
    assert expected in (OF_THIS_MACHINE, here.values[fact_id])


@pytest.mark.slow
def test_steps_and_replicas_see_only_variables_of_the_table(here: Record) -> None:
    # Python itself sets this one where no language is set.
    assert {*here.others} <= {"LC_CTYPE"}


@pytest.mark.slow
def test_no_value_of_the_user_is_in_the_record_and_no_folder_is_left(page: tuple[Path, Any]) -> None:
    folder, done = page
    assert sorted(each.name for each in folder.iterdir()) == [
        "HERE.json",
        "THEIRS.json",
        "localvertex-probe.json",
        "probe",
    ]
    texts = [path.read_text() for path in folder.iterdir()] + [each.stdout + each.stderr for each in done.values()]
    for text in texts:
        assert not [each for each in (SECRET, "PROBE_TEST_NOTE", str(folder)) if each in text]
    assert "0 DIFFERS" in done["python -m localvertex probe diff THEIRS.json"].stdout


def recorded(**changes: Any) -> dict[str, Any]:
    """Return a record in which every recorded fact is as here."""
    values = {fact.id: fact.here for fact in facts().values() if not fact.unrecorded}
    variables = [fact for fact in facts().values() if fact.group in VARIABLES]
    names = {role: [each.name for each in variables if role in each.here] for role in ("step", "primary", "worker")}
    content = {
        "format": FORMAT,
        "place": "Vertex AI",
        "date": "2026-11-27",
        "region": "us-central1",
        "names": names,
        "facts": {name: text for name, text in values.items() if facts()[name].group not in {*VARIABLES} - {"folder"}},
    }
    return content | changes


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Any], Path]:
    def write_(content: Any) -> Path:
        path = tmp_path / "THEIRS.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write_


def execute(action: str, path: Path, **options: Any) -> int:
    return command.execute(Namespace(action=action, record=path, **options))


def test_diff_shows_each_fact_with_its_source_in_80_columns(
    write: Callable[[Any], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    content = recorded()
    content["facts"] |= {"exit.143": "ends the job", "value.CLOUD_ML_PROJECT_ID": "a number"}
    content["names"]["primary"] += ["AIP_NEW_VARIABLE"]
    assert execute("diff", write(content)) == 1
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "Vertex AI on 2026-11-27 in us-central1" in shown
    flat = " ".join(shown.split())
    assert (
        "DIFFERS exit.143: here restarts the replica; Vertex AI ends the job; documented restarts the replica" in flat
    )
    assert "known value.CLOUD_ML_PROJECT_ID: here a name; Vertex AI a number; documented project number" in flat
    assert (
        "not probed restarts.spot: here 6; Vertex AI not recorded: needs seven preemptions; documented up to 6" in flat
    )
    assert all(f"{fact.id}:" in flat and fact.source in shown for fact in facts().values())
    assert "AIP_NEW_VARIABLE" in shown
    assert ", 1 DIFFERS, " in shown


def test_diff_without_an_unknown_difference_succeeds(
    write: Callable[[Any], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute("diff", write(recorded())) == 0
    assert ", 0 DIFFERS, " in capsys.readouterr().out


def test_what_was_not_recorded_is_not_called_measured(
    write: Callable[[Any], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(recorded(names={"step": ["PATH"], "primary": [], "worker": []}, facts={}))
    assert record.read(path).values == {}
    assert execute("diff", path) == 0
    assert f"0 same, 0 known, 0 DIFFERS, {len(record.recorded())} no value" in capsys.readouterr().out


HOSTILE = {
    "damaged": '{"format": "localvertex probe 1", "pla',
    "other file": {"a": 1},
    "list": [],
    "nested": "[" * 100_000,
    "recorded here": recorded(place="localvertex"),
    "other place": recorded(place="Vertex AI\x1b[2J"),
    "no date": recorded(date="yesterday"),
    "region": recorded(region="\x1b]0;x\x07"),
    "unknown fact": recorded(facts={"exit.\x1b[31m": "x"}),
    "control character": recorded(facts={"exit.1": "ends\x1b[2J"}),
    "long value": recorded(facts={"exit.1": "x" * 10_000}),
    "number": recorded(facts={"exit.1": 1e400}),
    "names": recorded(names={"step": ["A"], "primary": ["B"]}),
    "no list": recorded(names={"step": "A", "primary": [], "worker": [None]}),
    "many names": recorded(names={"step": [f"A{each}" for each in range(1001)], "primary": [], "worker": []}),
    "other version": recorded(format="localvertex probe 2"),
    "no day": recorded(date="2026-11-32"),
    "not recorded": recorded(facts={"restarts.spot": "6"}),
    "deep fact": recorded(facts={"exit.1": [[["ends the job"]]]}),
    "facts": recorded(facts=[]),
    "large": " " * (20 * 2**20) + "{}",
    "surrogate": recorded(region="\ud800"),
    "name with a value": recorded(names={"step": ["A=secret"], "primary": [], "worker": []}),
    "twice": '{"format": "localvertex probe 1", "format": "localvertex probe 1"}',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_record_is_refused_in_one_line(
    write: Callable[[Any], Path], content: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from localvertex._base.userinput import cli
    from localvertex.commands import commands

    path = write(content)
    options = Namespace(command="probe", action="diff", record=path)
    assert cli.run(lambda: commands.COMMANDS["probe"](options)) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert error.rstrip("\n").isprintable()
    assert len(error) < 700


def test_collect_shows_all_that_it_writes_and_writes_only_with_yes(
    write: Callable[[Any], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, target = write(recorded(project=SECRET, note={"a": SECRET})), tmp_path / "out.json"
    assert execute("collect", given, output=target, yes=False) == 0
    shown = capsys.readouterr().out
    assert not target.exists()
    assert SECRET not in shown
    assert "--yes" in shown
    assert execute("collect", given, output=target, yes=True) == 0
    assert target.read_text() in capsys.readouterr().out
    assert json.loads(target.read_text()) == recorded()
    with pytest.raises(Exception, match="exists and was not changed"):
        execute("collect", given, output=target, yes=True)
    assert execute("collect", given, output=target, yes=False) == 0
    with pytest.raises(Exception, match="cannot be read"):
        execute("collect", tmp_path / "none", output=target, yes=False)


def test_compile_writes_the_pipeline_and_its_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "probe.json"
    assert command.execute(Namespace(action="compile", output=target)) == 0
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines() if str(target) not in line)
    pipeline = command.compiled()
    text, tasks = json.dumps(pipeline), pipeline["components"]["comp-exit-handler-1"]["dag"]["tasks"].values()
    num_retries = sum(map(int, re.findall(r'"maxRetryCount": ([0-9]+)', text)))
    num_steps = len(pipeline["deploymentSpec"]["executors"]) + num_retries
    jobs = [str(each) for each in tasks if "worker_pool_specs" in str(each)]
    num_machines = sum(map(float, re.findall(r'"replica_count": ([0-9.]+)', text)))
    # A job ends by its timeout, and the program in a step ends itself a minute before.
    num_minutes = (num_steps + num_machines) * 15
    at_once = 2 * sum("dependentTasks" not in each for each in jobs)
    flat = " ".join(shown.split())
    assert f"{num_steps} steps and {len(jobs)} custom jobs on {num_machines:g} e2-standard-4" in flat
    assert f"at most {at_once} of these at once. Upper bound: {num_minutes:g} machine-minutes" in flat
    assert "Nothing was started" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["probe.json"]
    with pytest.raises(Exception, match="exists and was not changed"):
        command.execute(Namespace(action="compile", output=target))


def test_the_compiled_pipeline_is_valid_and_every_process_ends_itself(tmp_path: Path) -> None:
    pipeline = command.compiled()
    json_format.ParseDict(pipeline, pipeline_spec_pb2.PipelineSpec())
    (tmp_path / "probe.json").write_text(json.dumps(pipeline))
    assert len(open_file(tmp_path / "probe.json").pipeline.executors) == 18
    text = json.dumps(pipeline)
    assert '"PROGRAM"' not in text
    # Kubernetes and the platform would replace these in a command.
    program = Path(record.__file__).with_name("program.py").read_text()
    assert not re.search(r"\$\(|\{\{\$", program)
    assert len(program) < 60_000
    images = set(re.findall(r'"image(?:_uri)?": "([^"]+)"', text))
    assert images == {"python:3.11", "gcr.io/ml-pipeline/google-cloud-pipeline-components:2.22.0"}
    tasks = pipeline["components"]["comp-exit-handler-1"]["dag"]["tasks"].values()
    jobs = [each for each in tasks if "worker_pool_specs" in str(each)]
    inputs = [each["inputs"]["parameters"] for each in jobs]
    assert {each["timeout"]["runtimeValue"]["constant"] for each in inputs} == {"900s", "300s"}
    assert recording.LIMIT_SECONDS < 900


def test_the_template_is_what_google_s_component_compiles_to() -> None:
    assert probe_pipeline.TEMPLATE.read_text() == probe_pipeline.written()


@pytest.fixture
def program(tmp_path: Path) -> Run:
    """Run the recording program with secrets in all that it is given."""
    base = tmp_path / SECRET

    def run_(mode: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        text = Path(record.__file__).with_name("program.py").read_text()
        line = [sys.executable, "-I", "-S", "-c", text, mode, str(base), *words]
        return subprocess.run(line, env={"API_TOKEN": SECRET, **env}, capture_output=True, text=True, timeout=60)

    return run_


@pytest.fixture
def metadata_server() -> Iterator[str]:
    """The address of a metadata server that answers with a secret in capitals."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CAPITALS.encode())

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_program_records_no_value_that_it_was_given(program: Run, tmp_path: Path, metadata_server: str) -> None:
    secret, number = SECRET, "4711"
    spec = {
        "cluster": {"workerpool0": [secret], secret: [secret]},
        "environment": "cloud",
        "task": {"type": "workerpool0", secret: secret},
        "job": secret,
        secret: secret,
    }
    env = {"CLUSTER_SPEC": json.dumps(spec), "TF_CONFIG": json.dumps(spec), "CLOUD_ML_PROJECT_ID": number}
    env |= {
        "AIP_MODEL_DIR": f"{tmp_path}/{secret}/model",
        "AIP_CHECKPOINT_DIR": secret,
        "GCE_METADATA_HOST": metadata_server,
        "LANG": secret,
        f"BASH_FUNC_{secret}%%": secret,
    }
    (tmp_path / SECRET).mkdir()
    (tmp_path / SECRET / "record-worker").write_text("{}")
    assert program("replica", **env).returncode == 0
    placeholders = [f"{name}={secret}" for name in probe_pipeline.PLACEHOLDERS]
    for root in (f"gs://{secret}", "", "/"):
        output = {"artifacts": [{"uri": f"gs://{secret}/{secret}/more-{secret}/record"}]}
        values = {"empty": secret, "integer": int(number), "numbers": {"half": secret}}
        given: Any = {"inputs": {"parameterValues": values}, "outputs": {"artifacts": {"record": output}}}
        done = program("step", json.dumps(given), number, *placeholders, f"pipeline_root={root}")
        assert done.returncode == 0, done.stderr
        step = json.loads((tmp_path / SECRET / "record-step").read_text())["facts"]
        assert step["artifact.address"] == ("another form" if root in ("", "/") else "ROOT/JOB/another/record")
    status = {"state": CAPITALS, "error": {"message": secret}, "pipelineJobResourceName": secret, secret: secret}
    given["inputs"]["parameterValues"] = {"status": status}
    given["outputs"] = {"artifacts": {"probe": {"artifacts": [{"uri": f"{tmp_path}/result"}]}}}
    done = program("collect", json.dumps(given), secret)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "result").read_text()
    content = json.loads(text)
    assert content["place"] == "localvertex"
    assert content["region"] == "unknown"
    assert "API_TOKEN" in content["names"]["primary"]
    assert not [each for each in (secret, number, CAPITALS) if each in text]
    assert content["facts"]["cluster_spec.cluster"] == "another:1 workerpool0:1"
    assert content["facts"]["metadata.instance/zone"] == "answers"
    assert content["facts"]["exit_handler.state"] == "another"
    assert record.read(tmp_path / "result").content["names"] == content["names"]


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGTERM])
def test_a_process_ends_by_its_alarm_even_as_the_first_of_a_container(tmp_path: Path, number: int) -> None:
    text = Path(record.__file__).with_name("program.py").read_text()
    line = [sys.executable, "-I", "-S", "-c", text, "exits", str(tmp_path), "1"]
    with subprocess.Popen(line) as process:
        while not recording.found(str(tmp_path), "exit-1-start-0"):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        # Not -number: the kernel does not deliver a signal without a handler to process 1.
        assert process.wait() == 128 + number


def test_repeated_signals_do_not_shorten_the_recorded_grace(tmp_path: Path) -> None:
    text = Path(record.__file__).with_name("program.py").read_text()
    line = [sys.executable, "-I", "-S", "-c", text, "replica", str(tmp_path)]
    with subprocess.Popen(line) as process:
        while not recording.found(str(tmp_path), "record-worker"):
            assert process.poll() is None
            time.sleep(0.01)
        while len(recording.found(str(tmp_path), "end-tick-")) < 2:
            assert process.poll() is None
            process.terminate()
        process.kill()
    assert recording.ending(str(tmp_path), "end")["end.signal"] == "SIGTERM"


def test_the_primary_ends_only_after_the_last_end_of_the_worker(tmp_path: Path) -> None:
    text = Path(record.__file__).with_name("program.py").read_text()
    base, spec = str(tmp_path), json.dumps({"task": {"type": "workerpool0"}})
    line = [sys.executable, "-I", "-S", "-c", text, "exits", base, "1"]
    for start in range(2):
        recording.write(base, f"exit-1-start-{start}", 0)
    recording.write(base, "exit-1-end-0", ["1", 0, "a"])
    with subprocess.Popen(line, env={"CLUSTER_SPEC": spec}) as process:
        while not recording.found(base, "exit-1-seen-1-"):
            assert process.poll() is None
            time.sleep(0.01)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        recording.write(base, "exit-1-end-1", ["", 1, "b"])
        assert process.wait() == 0


@pytest.fixture
def chain(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Return the consequences of a worker's ends: exit code, second, and the primary's life that saw its start."""

    def chain_(name: str, *ends: tuple[str, float, str], note: str = "other") -> dict[str, str]:
        for number, end in enumerate(ends):
            recording.write(str(tmp_path), f"exit-{name}-end-{number}", end)
        recording.write(str(tmp_path), note, 0)
        return recording.consequences(str(tmp_path), name)

    return chain_


def test_restarts_are_told_apart_by_the_lives_of_the_primary(chain: Callable[..., dict[str, str]]) -> None:
    found = chain("143", ("143", 0, "a"), ("143", 9, "a"), ("143", 18, "a"), ("11", 30, "b"), ("", 60, "c"))
    assert found == {"exit.143": "restarts the replica", "restarts.replica": "2", "exit.11": "restarts the job"}


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([("134", 0, "a"), ("134", 99, "b"), ("134", 200, "c")], {"restarts.job": "2"}),
        ([("134", 0, "a"), ("134", 99, "b"), ("134", 200, "c"), ("", 300, "d")], {"restarts.job": "3 or more"}),
        # These may have ended by the timeout of the job.
        ([("134", 0, "a"), ("134", 99, "b"), ("134", 501, "c")], {}),
        ([("134", 0, "a"), ("134", 99, "b"), ("134", 200, "c"), ("134", 501, "d")], {}),
    ],
)
def test_a_budget_is_recorded_only_if_it_was_used_up(
    chain: Callable[..., dict[str, str]], ends: list[tuple[str, float, str]], expected: dict[str, str]
) -> None:
    assert chain("134", *ends) == {"exit.134": "restarts the job"} | expected


@pytest.mark.parametrize(
    ("name", "ends", "note", "expected"),
    [
        ("2", [("2", 0, "a")], "other", {"exit.2": "ends the job"}),
        ("2", [("2", 0, "a")], "exit-2-alone", {"exit.2": "no restart in 4 minutes"}),
        ("2", [("2", 0, "a"), ("", 9, "")], "other", {}),
        ("2", [("2", 0, ""), ("", 9, "")], "other", {}),
        ("0", [("0", 0, "a")], "other", {}),
        ("0", [("0", 0, "a")], "timeout-tick-000.00", {"exit.0": "ends the replica"}),
        ("0", [("0", 0, "a"), ("", 9, "a")], "timeout-tick-000.00", {"exit.0": "restarts the replica"}),
        (
            "139",
            [("139", 0, "a"), ("127", 9, "b")],
            "other",
            {"exit.139": "restarts the job", "exit.127": "ends the job"},
        ),
    ],
)
def test_what_follows_an_exit_code(
    chain: Callable[..., dict[str, str]], name: str, ends: Any, note: str, expected: dict[str, str]
) -> None:
    assert chain(name, *ends, note=note) == expected


def test_a_run_does_not_import_the_probe() -> None:
    code = (
        "import sys, localvertex.runs, localvertex.commands.run, localvertex.commands.commands, localvertex.__main__\n"
        "print([name for name in sys.modules if 'probe' in name and name.startswith('localvertex')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
