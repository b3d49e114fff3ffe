"""Whole proofs of small trainings: each defect is found, no right training is accused, and nothing is left or changed.

The wrong trainings are rewritten from public reports, which each names.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from vertex_testing.browser import browser as browser, needs_chromium, opened_report
from vertex_testing.server import wait_until

PIPELINES = Path(__file__).parents[2] / "data" / "machines" / "pipelines"
TRAININGS = Path(__file__).parent / "trainings"
WRONG = {
    "schedule": {"learning-rate schedule not restored"},
    "optimizer": {"optimizer not restored"},
    "sampler": {"data order"},
    "random_state": {"random state"},
    "in_place": {"checkpoint written in place"},
    "exit_code": {"exit code"},
    "epoch": {"steps repeated or left out"},
}
LOST = {
    "never_loads": ("killed-in-the-middle", "no checkpoint is loaded"),
    "never_saves": ("killed-in-the-middle", "no file was written"),
    "oldest": ("killed-in-the-middle", "the oldest checkpoint is loaded"),
    "first_attempt": ("killed-twice", "the checkpoints in attempt-0 are loaded"),
}
"""Trainings that end as undisturbed ones, but lose steps that were saved: a fault that shows it, and what is said."""
SILENT = {
    "accumulation": {"optimizer not restored", "accumulated gradients not restored"},
    "patience": {"stopping condition not restored"},
    "best": set[str](),
    "metrics": set[str](),
    "worker": set[str](),
}
"""Trainings whose defects few faults show, and the causes that may be named."""
RIGHT = [path.stem for path in sorted((TRAININGS / "right").glob("*.py"))]

OWN_FOLDERS = """
import json, os, runpy, sys
task = json.loads(os.environ["CLUSTER_SPEC"])["task"]
os.environ["AIP_CHECKPOINT_DIR"] += f"{task['type']}-{task['index']}"
os.makedirs(os.environ["AIP_CHECKPOINT_DIR"], exist_ok=True)
if task["type"] != "workerpool0":
    os.environ["AIP_MODEL_DIR"] = os.environ["AIP_CHECKPOINT_DIR"]
runpy.run_path(sys.argv[1])
"""
"""Runs a program with a checkpoint folder for each replica."""

Prove = Callable[..., tuple[int, str, Any]]


def digests(folder: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def prove(tmp_path: Path) -> Prove:
    """Return a function that proves a training, and checks what may never happen."""

    def prove_(*words: str, seed: int = 0, faults: tuple[str, ...] = ()) -> tuple[int, str, Any]:
        before = digests(TRAININGS)
        flags = [word for fault in faults for word in ("--fault", fault)]
        command = [
            sys.executable,
            "-m",
            "localvertex",
            "prove",
            "--seed",
            str(seed),
            "--json",
            "proof.json",
            *flags,
            *words,
        ]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=1200)
        assert digests(TRAININGS) == before
        assert {path.name for path in tmp_path.iterdir()} <= {"runs", "proof.json", "train.py", "job.yaml", "bin"}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                assert str(tmp_path / "runs") not in path.read_text()
            except OSError:
                continue
        proofs = json.loads((tmp_path / "proof.json").read_text()) if (tmp_path / "proof.json").exists() else []
        texts = [line for line in done.stdout.splitlines() if not line.endswith("prove.html")]
        assert max(map(len, texts), default=0) <= 80
        return done.returncode, done.stdout + done.stderr, proofs and proofs[0]

    return prove_


def training(kind: str, name: str) -> list[str]:
    words = ["--", "python", str(TRAININGS / kind / f"{name}.py")]
    return [*words, "{checkpoints}"] if name == "in_place" else words


def two_replicas(*command: str) -> str:
    pool = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": 1,
        "containerSpec": {"imageUri": "gcr.io/x/y:1", "command": [*command]},
    }
    return json.dumps({"displayName": "two", "jobSpec": {"workerPoolSpecs": [pool, pool]}})


@pytest.mark.slow
def test_a_defect_is_found(prove: Prove) -> None:
    code, text, proof = prove(*training("wrong", "schedule"), faults=("killed-in-the-middle",))
    assert code == 1, text
    (fault,) = proof["faults"]
    assert (fault["verdict"], fault["causes"]) == ("different", ["learning-rate schedule not restored"]), text
    assert re.search(r"^schedule: 0 of 1 faults equal; 0 cannot be judged$", text, re.M)
    (page,) = re.findall(r"^curves: (.*)$", text, re.M)
    assert "learning-rate schedule not restored" in Path(page).read_text()


@pytest.mark.slow
def test_the_command_of_the_page_accuses_no_right_training(prove: Prove, package: Path, tmp_path: Path) -> None:
    (line,) = re.findall(r"^    (python .*)$", (package / "docs" / "prove.md").read_text(), re.M)
    (tmp_path / "train.py").write_text((TRAININGS / "right" / "exact.py").read_text())
    words = shlex.split(line)
    assert words[:4] == ["python", "-m", "localvertex", "prove"]
    code, text, proof = prove(*words[4:], faults=("torn-checkpoint",))
    assert code == 0, text
    assert [each["verdict"] for each in proof["faults"]] == ["equal"], text


@pytest.mark.slow
@pytest.mark.parametrize("num_left", [pytest.param(0, marks=pytest.mark.soak), 1])
def test_processes_that_a_training_leaves_are_shown(prove: Prove, tmp_path: Path, num_left: int) -> None:
    start = "import subprocess; subprocess.Popen(['sleep', '60'], start_new_session=True)\n" * num_left
    (tmp_path / "train.py").write_text((TRAININGS / "right" / "exact.py").read_text() + start)
    code, text, proof = prove("--", "python", "train.py", faults=("killed-early",))
    assert code == 0, text
    assert [each["processes_left"] for each in proof["faults"]] == [num_left]
    assert (f"processes left: {num_left}" in text) is (num_left > 0), text


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", WRONG)
def test_every_defect_is_found(prove: Prove, name: str, seed: int) -> None:
    code, text, proof = prove(*training("wrong", name), seed=seed)
    assert code == 1, text
    found = [set(each["causes"]) for each in proof["faults"] if each["causes"]]
    assert any(each & WRONG[name] for each in found), text


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
@pytest.mark.parametrize(
    ("kind", "name", "verdict"), [("right", "exact", "equal"), ("wrong", "in_place", "did not finish")]
)
def test_a_kill_at_every_file_event(prove: Prove, kind: str, name: str, verdict: str) -> None:
    code, text, proof = prove(*training(kind, name), faults=("at-every-file-event",))
    (fault,) = proof["faults"]
    assert (code, fault["verdict"]) == (int(kind == "wrong"), verdict), text
    assert fault["exit_codes"][0] == 137
    if kind == "right":
        assert int(fault["reason"].split()[0]) >= 4
    else:
        assert fault["reason"].startswith("at write last.npz: ")
        assert fault["causes"] == ["checkpoint written in place"]


@pytest.mark.slow
def test_a_machine_without_a_compiler_cannot_judge_file_events(
    prove: Prove, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    code, text, proof = prove(*training("right", "exact"), faults=("at-every-file-event",))
    assert (code, proof["faults"][0]["verdict"]) == (2, "cannot be judged"), text
    assert "found no C compiler" in proof["faults"][0]["reason"]


@pytest.mark.slow
def test_a_reproducer_needs_only_python(prove: Prove, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "reproducer"
    words = ["--reproducer", "runs/reproducer", *training("wrong", "schedule")]
    code, text, _ = prove(*words, faults=("killed-in-the-middle",))
    assert code == 1, text
    (found,) = folder.glob("*/*")
    names = {"README.md", "reproduce.py", "undisturbed", "disturbed", "program"}
    assert {each.name for each in found.iterdir()} == names
    assert (found / "program/schedule.py").read_bytes() == (TRAININGS / "wrong" / "schedule.py").read_bytes()
    assert "learning-rate schedule not restored" in (found / "README.md").read_text()
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    again = subprocess.run([sys.executable, "-I", "reproduce.py"], cwd=found, env=env, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    # The schedule begins anew: the last steps have other rates.
    assert "+step 150" in again.stdout
    logs = [(found / "again" / name / "log.txt").read_text() for name in ("undisturbed", "disturbed")]
    rates = [dict(re.findall(r"^step (\d+) .* lr (\S+)$", log, re.M)) for log in logs]
    assert rates[0].keys() == rates[1].keys()
    assert all(rates[0][step] != rates[1][step] for step in map(str, range(140, 151)))
    (tmp_path / "proof.json").unlink()
    assert prove(*words)[:2] == (2, "error: --reproducer='runs/reproducer' is not empty; give a new folder\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", LOST)
def test_lost_progress_is_bad(prove: Prove, name: str) -> None:
    fault, reason = LOST[name]
    code, text, proof = prove(*training("wrong", name), faults=(fault,))
    assert code == 1, text
    assert [each["verdict"] for each in proof["faults"]] == ["progress lost"], text
    assert reason in proof["faults"][0]["reason"]
    assert not proof["faults"][0]["causes"]


@pytest.mark.slow
def test_what_other_kills_show_is_no_fault_of_a_flipped_bit(prove: Prove, tmp_path: Path) -> None:
    # The bit is in a member of the checkpoint that the program does not read.
    source = (TRAININGS / "wrong" / "metrics.py").read_text()
    (tmp_path / "train.py").write_text(source.replace("step=step + 1)", "step=step + 1, unread=np.zeros(1000))"))
    code, text, proof = prove("--", "python", "train.py", faults=("killed-in-the-middle", "bit-flipped"))
    found = [(each["verdict"], each["causes"]) for each in proof["faults"]]
    assert (code, found) == (1, [("different", [])] * 2), text


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [*LOST, *SILENT])
def test_every_silent_defect_is_found(prove: Prove, tmp_path: Path, name: str, seed: int) -> None:
    words = training("wrong", name)
    if name == "worker":
        (tmp_path / "job.yaml").write_text(two_replicas(*words[1:]))
        words = ["job.yaml"]
    code, text, proof = prove(*words, seed=seed)
    assert code == 1, text
    found = {cause for each in proof["faults"] for cause in each["causes"]}
    assert found <= SILENT.get(name, set()), text


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", RIGHT)
def test_no_right_training_is_accused(prove: Prove, name: str, seed: int) -> None:
    code, text, proof = prove(*training("right", name), seed=seed)
    assert code == 0, text
    verdicts = [each["verdict"] for each in proof["faults"]]
    assert {*verdicts} <= {"equal", "equal within noise", "cannot be judged"}
    assert sum(each.startswith("equal") for each in verdicts) >= 8, text


@pytest.mark.slow
@pytest.mark.soak
@needs_chromium
def test_the_page_in_a_browser(prove: Prove, browser: Browser) -> None:
    _, text, _ = prove(*training("wrong", "schedule"), faults=("killed-in-the-middle",))
    (page,) = re.findall(r"^curves: (.*)$", text, re.M)
    with opened_report(browser, Path(page)) as view:
        expect(view.get_by_role("row", name="killed-in-the-middle")).to_contain_text("schedule not restored")
        expect(view.get_by_role("row", name="killed-in-the-middle").get_by_role("cell").nth(2)).to_have_text(
            re.compile(r"\d+")
        )
        expect(view.get_by_text("A is an undisturbed run")).to_be_visible()
        expect(view.locator("canvas").first).to_be_visible()
        expect(view.locator(".letter", has_text="A").first).to_be_visible()


@pytest.mark.slow
@pytest.mark.soak
def test_one_of_two_replicas_is_lost(prove: Prove, tmp_path: Path) -> None:
    job = two_replicas("python", "-c", OWN_FOLDERS, str(TRAININGS / "right" / "exact.py"))
    (tmp_path / "job.yaml").write_text(job)
    code, text, proof = prove("job.yaml", faults=("one-replica", "other-workers", "killed-in-the-middle"))
    assert code == 0, text
    assert {each["verdict"] for each in proof["faults"]} <= {"equal", "equal within noise"}, text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fault", "melted", "--", "true"], "error: --fault 'melted': expected killed-early, "),
        (["--number", "loss", "--", "true"], "error: --number 'loss': expected a part of a line with names"),
        ([str(PIPELINES / "literal.json")], "error: the pipeline cannot run here:"),
        (["--number", "{1}", "--", "true"], "error: --number '{1}': expected a part of a line with names"),
        (["no.json"], "error: no.json cannot be read"),
        ([str(PIPELINES / "camel.json"), "--step", "x"], "no step has this name; its steps are custom-training-job"),
        (["--step", "train", "--", "true"], "error: true: --step and parameters are only for compiled pipelines"),
        (["--", "no-such-program"], "error: 'no-such-program': expected a program, or a .json or .yaml file"),
        (["--json", str(PIPELINES), "--", "true"], "pipelines' cannot be written (it is a folder); give another file"),
        (
            ["--work-dir", str(PIPELINES / "camel.json"), "--", "true"],
            "camel.json is not a folder); give another folder",
        ),
    ],
)
def test_wrong_input(capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], message: str) -> None:
    from localvertex.__main__ import main

    assert main(["prove", "--work-dir", str(tmp_path / "runs"), *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_an_interrupted_proof_leaves_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "localvertex", "prove", "--", "sleep", "600"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as proof:
        wait_until(lambda: list(tmp_path.glob("runs/prove/*/job-1/undisturbed-1/folder/*.log")))
        proof.send_signal(signal.SIGINT)
        texts = proof.communicate(timeout=60)
    assert (proof.returncode, *texts) == (130, "interrupted: nothing was proved, and the runs so far are removed\n", "")
    assert not list(tmp_path.glob("runs/prove/*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "message"),
    [
        pytest.param("false", "the undisturbed run failed", marks=pytest.mark.soak),
        ("true", "no numbers in the log"),
    ],
)
def test_what_cannot_be_judged_is_not_equal(prove: Prove, program: str, message: str) -> None:
    code, text, _ = prove("--", program)
    assert code == 2
    assert message in text


@pytest.mark.slow
def test_a_checkpoint_that_all_runs_share_is_refused(prove: Prove, tmp_path: Path) -> None:
    program = """
import os, sys
for step in range(9 if not os.path.exists(sys.argv[1]) else 0):
    print(f"step {step} loss={step}")
open(sys.argv[1], "w").close()
print("accuracy 0.5")
"""
    (tmp_path / "train.py").write_text(program)
    code, text, _ = prove("--", "python", "train.py", str(tmp_path / "runs" / "checkpoint"))
    assert code == 2
    assert "did not train from the beginning: keep checkpoints in AIP_CHECKPOINT_DIR" in text
