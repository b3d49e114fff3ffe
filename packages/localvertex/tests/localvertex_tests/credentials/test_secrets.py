"""Logs, records and pages contain no values of variables that look like secrets."""

from pathlib import Path

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

import localvertex
from localvertex.credentials.secrets import Secrets, looks_like_secret
from localvertex.processes.sinks import MASK
from vertex_testing.runs import STEP, Execute, FindTask, ReadLog
from vertex_testing.server import Server, wait_until

SECRET = 'planted "secret" 4711'


@dsl.component(**STEP)
def environment(path: str) -> str:
    import json
    import os
    from pathlib import Path

    print(dict(os.environ), json.dumps(dict(os.environ)))
    Path(path).write_text(os.environ.get("DB_PASSWORD", "") + os.environ.get("HF_TOKEN", ""))
    return "the password is " + os.environ.get("DB_PASSWORD", "")


@dsl.pipeline(name="prints")
def prints(path: str, pools: list) -> None:
    environment(path=path).set_env_variable("DB_PASSWORD", SECRET)
    CustomTrainingJobOp(display_name="j", worker_pool_specs=pools)


def pools(code: str) -> list[dict]:
    container = {"image_uri": "python:3.11", "command": ["python3", "-c", code]}
    container["env"] = [{"name": "API_KEY", "value": "planted-key-of-the-job"}]
    return [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}]


@dsl.component(**STEP)
def cached(page: dsl.Output[dsl.HTML]) -> str:
    import os
    from pathlib import Path

    shown = " ".join(os.environ[name] for name in ("DB_PASSWORD", "A_TOKEN", "A_WEBHOOK"))
    Path(page.path).write_text(f"<p>{shown}</p>")
    return shown


@dsl.pipeline(name="cached")
def caches(token: str) -> None:
    step = cached().set_caching_options(True)
    step.set_env_variable("DB_PASSWORD", "planted-password").set_env_variable("A_TOKEN", f"planted-{token}")
    step.set_env_variable("A_WEBHOOK", "https://127.0.0.1:9/services/planted-password")


def test_an_output_with_a_secret_is_not_cached_and_a_page_of_a_step_shows_none(
    execute: Execute, work_dir: Path, task: FindTask
) -> None:
    for name in ("first", "second"):
        record = execute(caches, {"token": "abc"}, run_id=name)
        assert task(record, "cached")["state"] == "SUCCEEDED"
        for file in ("run.json", "run.html"):
            text = (work_dir / name / file).read_text()
            assert "planted-password" not in text, (name, file)
            assert MASK in text


def test_a_secret_with_a_bracket_is_not_in_the_report(execute: Execute, work_dir: Path) -> None:
    execute(caches, {"token": "a</b>ü"}, run_id="bracket")
    text = (work_dir / "bracket" / "run.html").read_text()
    assert "planted-a" not in text
    assert MASK in text


def test_a_secret_is_passed_on_and_the_step_cache_does_not_contain_it(
    execute: Execute, work_dir: Path, task: FindTask
) -> None:
    for run_id in ("first", "second"):
        record = execute(passes_on, run_id=run_id)
        assert record["state"] == "SUCCEEDED", record["error"]
        (seen,) = (work_dir / run_id / "receive").glob("seen-*")
        assert seen.name == f"seen-{SECRET[-4:]}-{len(SECRET)}"
    assert task(record, "hand-out")["state"] == "SUCCEEDED"
    texts = [path.read_text() for path in (work_dir / ".localvertex" / "cache").iterdir()]
    assert not [text for text in texts if "4711" in text]


@dsl.component(**STEP)
def hand_out() -> str:
    import os

    return os.environ["DB_PASSWORD"]


@dsl.component(**STEP)
def receive(text: str) -> None:
    from pathlib import Path

    Path(f"seen-{text[-4:]}-{len(text)}").touch()


@dsl.pipeline(name="passes-on")
def passes_on() -> None:
    given = hand_out().set_env_variable("DB_PASSWORD", SECRET)
    receive(text=given.output).set_caching_options(False)


@dsl.component(**STEP)
def make(part: str) -> str:
    print("made", part + "4711")
    return part + "4711"


@dsl.component(**STEP)
def use(text: str) -> None:
    import os
    from pathlib import Path

    Path(f"seen-{len(os.environ['DB_PASSWORD'])}").touch()


@dsl.pipeline(name="late")
def late() -> None:
    made = make(part="late-")
    use(text=made.output).set_env_variable("DB_PASSWORD", "{{$.inputs.parameters['text']}}")


def test_a_value_that_becomes_a_secret_later_is_removed_from_earlier_files(
    execute: Execute, work_dir: Path, task: FindTask
) -> None:
    for run_id in ("first", "second"):
        record = execute(late, run_id=run_id)
        assert record["state"] == "SUCCEEDED", record["error"]
        files = [each for each in work_dir.rglob("*") if each.is_file()]
        assert not [each for each in files if b"late-4711" in each.read_bytes()]
    assert (work_dir / "first" / "use" / "seen-9").exists()


def test_the_logs_of_the_server_contain_no_secret_of_a_job(tmp_path: Path) -> None:
    with Server(tmp_path / "runs") as server:
        job = {"displayName": "j", "jobSpec": {"workerPoolSpecs": pools(SHOW + "; sys.exit(os.environ['API_KEY'])")}}
        name = server.call("POST", "customJobs", job).json()["name"].rpartition("/")[2]
        ended = wait_until(lambda: (job := server.call("GET", f"customJobs/{name}").json()).get("endTime") and job)
        (log,) = (tmp_path / "runs" / "api" / "customJobs" / name).glob("*.log")
        assert MASK in log.read_text()
        assert "planted-key-of-the-job" not in log.read_text() + ended["error"]["message"] + server.text


SHOW = "import os, sys; print(os.environ); print(os.environ['API_KEY'])"


def written(work_dir: Path, run_id: str) -> str:
    """Return the text of everything that a run leaves for people to read."""
    run_dir = work_dir / run_id
    files = [run_dir / "run.json", run_dir / "run.html", *run_dir.rglob("*.log"), *run_dir.rglob("log.txt")]
    assert len(files) >= 4
    return "\n".join(file.read_text() for file in files)


@pytest.mark.parametrize("with_credentials", [False, True])
def test_no_log_record_or_page_contains_a_secret(
    execute: Execute, work_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_credentials: bool
) -> None:
    monkeypatch.setenv("HF_TOKEN", "planted-hub-token")
    monkeypatch.setenv("TEAM_WEBHOOK_URL", "https://example.com/planted-hook")
    values = {"path": str(tmp_path / "seen"), "pools": pools(SHOW + "; sys.exit(os.environ['API_KEY'])")}
    record = execute(prints, values, run_id="r", with_credentials=with_credentials)
    assert record["state"] == "FAILED"
    assert (tmp_path / "seen").read_text() == SECRET + "planted-hub-token" * with_credentials
    text = written(work_dir, "r") + str(record)
    for secret in (SECRET, SECRET.replace('"', '\\"'), "planted-key-of-the-job", "planted-hub-token", "planted-hook"):
        assert secret not in text
    assert MASK in text


def test_a_run_with_a_secret_in_a_parameter_is_not_resumed_with_its_mask(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    execute(prints, {"path": str(tmp_path / "seen"), "pools": pools("raise SystemExit(2)")}, run_id="r")
    with pytest.raises(localvertex.UserError, match="a secret in a parameter, which is not stored"):
        localvertex.resume("r", options=localvertex.Options(work_dir=work_dir))


@dsl.component(**STEP)
def fail_once(marker: str, text: str) -> str:
    from pathlib import Path

    Path("seen").write_text(text)
    if not Path(marker).exists():
        Path(marker).touch()
        raise ValueError
    return text


@dsl.pipeline(name="resumed")
def resumed(path: str, marker: str) -> str:
    first = environment(path=path).set_env_variable("DB_PASSWORD", SECRET)
    return fail_once(marker=marker, text=first.output).output


def test_a_resumed_step_never_gets_a_mask_as_its_input(
    execute: Execute, work_dir: Path, tmp_path: Path, task: FindTask, log_text: ReadLog
) -> None:
    values = {"path": str(tmp_path / "seen"), "marker": str(tmp_path / "marker")}
    assert execute(resumed, values, run_id="r", use_cache=False)["state"] == "FAILED"
    (tmp_path / "seen").unlink()
    record = localvertex.resume("r", options=localvertex.Options(work_dir=work_dir, use_cache=False))
    assert record["state"] == "SUCCEEDED"
    assert (tmp_path / "seen").read_text() == SECRET, "the step ran again: its output is not in the record"
    step = work_dir / "r" / "fail-once"
    assert (step / "seen").read_text() == "the password is " + SECRET, "the step itself receives the value"
    for name in ("executor_input.json", "executor_output.json"):
        text = (step / name).read_text()
        assert MASK in text, name
        assert "4711" not in text, name


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("HF_TOKEN", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("db-password", True),
        ("OPENAI_API_KEY", True),
        ("TOKENIZERS_PARALLELISM", False),
        ("PWD", False),
        ("OLDPWD", False),
        ("PATH", False),
        ("KEYBOARD", False),
        ("SSH_AUTH_SOCK", False),
    ],
)
def test_names_that_look_like_secrets(name: str, is_secret: bool) -> None:
    assert looks_like_secret(name) == is_secret


def test_short_values_and_paths_are_no_secrets() -> None:
    secrets = Secrets()
    secrets.learn({"A_KEY": "1", "B_KEY": "true", "C_KEY": "/home/me/key.json"})
    assert secrets.remove({"x": "1 true /home/me/key.json"}) == {"x": "1 true /home/me/key.json"}


def test_the_path_of_a_webhook_is_as_secret_as_its_address() -> None:
    secrets = Secrets()
    path = "/services/T0PLANTED/B1?key=wxyz"
    secrets.learn(
        {"TEAM_WEBHOOK_URL": f"https://hooks.example.org{path}", "OTHER_WEBHOOK": "http://127.0.0.1:80/tmp/x"}
    )
    text = f"host='hooks.example.org': Max retries exceeded with url: {path} (POST https://hooks.example.org{path})"
    expected = f"host='hooks.example.org': Max retries exceeded with url: /{MASK} (POST {MASK})"
    assert secrets.remove(text) == expected
    assert secrets.remove("/tmp/x/run.json") == "/tmp/x/run.json"
