"""Scripts of an image that another program starts: proposed with their folder, and found there."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

from localvertex.containers.choice import Choice
from localvertex.containers.options import ContainerOptions
from localvertex.containers.programs import scripts_of_shell
from localvertex.containers.stand_ins import StandIn
from localvertex.containers.started import started
from localvertex.errors import Refused
from localvertex.runner import engine
from localvertex.runner.options import Options
from localvertex.values import configuration, repository
from vertex_testing.runs import Compile, Execute

needs_sandbox = pytest.mark.skipif(bool(Choice().how.problem), reason=Choice().how.problem or "bubblewrap works")

IMAGE = "europe-docker.pkg.dev/shop/train/train"

TRAIN = "import pathlib, sys\npathlib.Path(sys.argv[1]).write_text(pathlib.Path(__file__).parent.name)\n"


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def by_list(result: dsl.OutputPath(str)) -> None:  # type: ignore[valid-type]
    import subprocess
    import sys

    subprocess.run([sys.executable, "/app/src/train.py", result], check=True)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def by_text(result: dsl.OutputPath(str)) -> None:  # type: ignore[valid-type]
    import os

    os.makedirs(os.path.dirname(result), exist_ok=True)
    assert os.system(f"python /app/src/train.py {result}") == 0


def shell(text: str) -> Any:
    """Return a container component that runs a text, with the file of its result as $0."""

    @dsl.container_component
    def train(result: dsl.OutputPath(str)) -> dsl.ContainerSpec:  # type: ignore[valid-type]
        return dsl.ContainerSpec(image=IMAGE, command=["sh", "-c", text], args=[result])

    return train


def of(component: Any) -> Any:
    """Return a pipeline of one step."""

    @dsl.pipeline(name="starts")
    def starts() -> None:
        component()

    return starts


STARTS = {
    "a list in Python": by_list,
    "a text in Python": by_text,
    "a simple line": shell("python3 /app/src/train.py result"),
    "a text": shell('set -e\npip --version > /dev/null 2>&1\npython3 /app/src/train.py "$0"'),
    "a text after a comment": shell('# trains\nexport MODE=fast; python3 -u "/app/src/train.py" "$0"'),
    "a relative script": shell('echo start && python3 src/train.py "$0"'),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change into an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(TRAIN)


def refusal_of(file: Path) -> Refused:
    on_host = ContainerOptions(allow_host_commands=True)
    found = configuration.read(Path("localvertex.toml")) if Path("localvertex.toml").exists() else None
    with pytest.raises(Refused) as error:
        engine.open_file(file, Options(containers=on_host, **({"configuration": found} if found else {})))
    return error.value


@pytest.fixture(params=["on the host", pytest.param("in the sandbox", marks=needs_sandbox)])
def containers(request: pytest.FixtureRequest) -> ContainerOptions:
    """Return how container commands run."""
    return ContainerOptions(allow_host_commands=request.param == "on the host")


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_what_the_first_answer_proposes_runs(
    name: str, here: Path, compiled: Compile, execute: Execute, containers: ContainerOptions
) -> None:
    write("src/train.py", "runs/earlier/src/train.py", "env/src/train.py")
    Path("runs/earlier/run.json").write_text("{}")
    Path("env/pyvenv.cfg").touch()
    file = compiled(of(STARTS[name]))
    refused = refusal_of(file)
    assert "train.py" in str(refused)
    assert tomllib.loads(refused.proposal) == {"image": {IMAGE: {"path": "."}}}
    Path("localvertex.toml").write_text(refused.proposal)
    record = execute(file, configuration=configuration.read(Path("localvertex.toml")), containers=containers)
    assert record["state"] == "SUCCEEDED", record["error"]
    if name != "a simple line":
        assert next(iter(record["tasks"]))["outputs"]["parameters"]["result"] == "src"


@pytest.mark.slow
def test_a_replica_finds_its_script(
    here: Path, compiled: Compile, execute: Execute, containers: ContainerOptions
) -> None:
    write("code/train.py")
    Path("buckets/out").mkdir(parents=True)
    text = "echo start; python3 /app/train.py /gcs/out/text"
    container = {"image_uri": IMAGE, "command": ["sh", "-c"], "args": [text]}
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}

    @dsl.pipeline(name="jobs")
    def jobs() -> None:
        CustomTrainingJobOp(display_name="train", worker_pool_specs=[pool])

    file = compiled(jobs)
    refused = refusal_of(file)
    assert tomllib.loads(refused.proposal) == {"image": {IMAGE: {"path": "code"}}}
    Path("localvertex.toml").write_text(refused.proposal)
    found = configuration.read(Path("localvertex.toml"))
    record = execute(file, configuration=found, containers=containers, gcs_root=here / "buckets")
    assert record["state"] == "SUCCEEDED", record["error"]
    assert Path("buckets/out/text").read_text() == "code"


@pytest.mark.parametrize(
    ("files", "command", "path"),
    [
        (["src/train.py"], ["python", "/app/train.py"], "src"),
        (["train.py"], ["python3", "train.py"], "."),
        (["training/src/main.py", "app/main.py"], ["python3", "src/main.py"], "training"),
        (["a/train.py", "b/train.py"], ["python", "/app/train.py"], "path/to/source"),
        (["other.py"], ["python", "/app/train.py"], "path/to/source"),
        (["jobs/run.sh"], ["bash", "/opt/run.sh"], "jobs"),
        (["shop_trainer/task.py"], ["python", "-m", "shop_trainer.task"], "."),
        (["src/shop_trainer/task.py"], ["python", "-m", "shop_trainer.task"], "src"),
    ],
)
def test_the_folder_of_the_only_file_is_proposed(
    files: list[str], command: list[str], path: str, here: Path, compiled: Compile
) -> None:
    write(*files)

    @dsl.container_component
    def train() -> dsl.ContainerSpec:
        return dsl.ContainerSpec(image=IMAGE, command=command)

    refused = refusal_of(compiled(of(train)))
    assert tomllib.loads(refused.proposal) == {"image": {IMAGE: {"path": path}}}
    assert ("this repository has a/train.py and b/train.py" in str(refused)) == (files[0] == "a/train.py")


def test_the_modules_of_a_started_script_are_named_with_it(here: Path, compiled: Compile) -> None:
    write("src/train.py")
    Path("src/train.py").write_text("import sklearn_of_the_shop\nimport beside\n")
    Path("src/beside.py").write_text("import another_of_the_shop\n")
    Path("localvertex.toml").write_text(f'[image."{IMAGE}"]\npath = "."\n')
    refused = str(refusal_of(compiled(of(by_list))))
    assert "sklearn_of_the_shop is in its base image" in refused
    assert "another_of_the_shop is in its base image" in refused
    assert "beside is" not in refused


def test_a_script_that_is_not_below_the_folder_is_said(here: Path, compiled: Compile) -> None:
    Path("src").mkdir()
    Path("localvertex.toml").write_text(f'[image."{IMAGE}"]\npath = "src"\n')
    (reason,) = refusal_of(compiled(of(by_list))).reasons
    assert "the script '/app/src/train.py' is not below" in reason


def test_a_folder_with_too_many_files_is_not_looked_through(
    here: Path, compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("src/train.py", "src/other.py")
    monkeypatch.setattr(repository, "_MAX_FILES", 1)
    refused = refusal_of(compiled(of(by_list)))
    assert tomllib.loads(refused.proposal) == {"image": {IMAGE: {"path": "path/to/source"}}}


def test_a_script_that_only_the_run_knows_or_that_is_here_stays(here: Path, tmp_path: Path) -> None:
    write("src/train.py", "a b/train.py")
    stand_in = StandIn(image=IMAGE, path=tmp_path / "src")
    for name in ("{{$.inputs.parameters['script']}}", str(tmp_path / "a b" / "train.py")):
        assert stand_in.localized(["sh", name, "x"]) == ("sh", name, "x")
    text = "echo; python3 /gcs/bucket/train.py"
    assert stand_in.localized(["sh", "-c", text]) == ("sh", "-c", text)


UNDECIDED = [
    "set -e; python3 /gcs/bucket/train.py",
    "git clone https://x.example/app /app && python /app/train.py",
    "ls > /app/train.py; python /app/train.py",
    "cp -r $0 /app; python /app/train.py",
    "if [ -f /app/train.py ]; then python /app/train.py; fi",
    "test -f /app/train.py && python /app/train.py",
    "python /app/train.py || true",
    "cat > /app/train.py <<E\nprint(1)\nE\npython /app/train.py",
    "cd /app && python train.py",
    "fetch-code; python /app/train.py",
    'echo "usage: ls; python /app/train.py"',
    "# python /app/train.py\ntrue",
    "for i in 1 2; do python /app/train.py; done",
    "python -m app /app/train.py",
    "python -c 'print(1)' /app/train.py",
    "$(make-code); python /app/train.py",
    "x=$(make-code /app); python /app/train.py",
]


@pytest.mark.parametrize("text", UNDECIDED)
def test_a_text_that_may_bring_or_skip_its_script_is_left_to_the_run(text: str) -> None:
    assert scripts_of_shell(text) == []


CODE = {
    "subprocess.run(['python', '/gcs/bucket/train.py'])": [],
    "import os\n if os.path.exists('/app'): os.system('python /app/train.py')": [],
    "import os\n if True:\n  os.system('python /app/train.py')": [],
    "shutil.copytree(x, '/app')\n subprocess.run(['python', '/app/train.py'])": [],
    "tar.extractall('/')\n subprocess.run(['python', '/app/train.py'])": [],
    "try:\n  subprocess.run(['python', '/app/train.py'], check=True)\n except Exception: pass": [],
    "subprocess.run(['python', 'train.py'])": [],
    "subprocess.run(['python', f'/app/{name}.py'])": [],
    "'''Runs python /app/train.py'''\n print('python /app/train.py')": [],
    "words = [sys.executable, '-u', '/app/train.py']\n subprocess.run(words)": ["/app/train.py"],
    "subprocess.check_call('bash /app/train.sh --x 1', shell=True)": ["/app/train.sh"],
    "with open('log', 'w') as log:\n  subprocess.run(['/usr/bin/python3', '/app/train.py'], stdout=log)": [
        "/app/train.py"
    ],
}


@pytest.mark.parametrize("code", CODE)
def test_code_starts_what_it_runs_in_any_case(code: str) -> None:
    words = ["sh", "-c", "install", "sh", "-ec", "ephemeral_component", f"def step(x: str):\n {code}\n"]
    assert started(words) == CODE[code]


def test_a_path_with_blanks_is_refused_before_it_becomes_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: Compile
) -> None:
    folder = tmp_path / "a b; touch escaped"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write("src/train.py")
    Path("localvertex.toml").write_text(f'[image."{IMAGE}"]\npath = "."\n')
    assert "move it to a path without blanks" in str(refusal_of(compiled(of(STARTS["a relative script"]))))
    assert not os.path.exists("escaped")
