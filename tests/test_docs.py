"""The commands of the pages that no package's own tests cover, run as written; links resolve."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import numpy as np
import pytest
import yaml
from PIL import Image

import compile
import pipelines.__main__ as pipelines
from tests import versions
from tests.support.forks import fork_module
from tests.support.gcloud import empty
from tests.support.modules import call_module
from trainer.models import recipes
from vertex_testing.in_process import call
from vertex_testing.server import Server

ROOT = pathlib.Path(__file__).resolve().parent.parent
WHERE = ("*.md", "docs/**/*.md", "benchmarks/*.md", "packages/*/*.md", "packages/*/docs/*.md")
PAGES = sorted(str(path.relative_to(ROOT)) for pattern in WHERE for path in ROOT.glob(pattern))


def commands(page: pathlib.Path, program: str = "python") -> list[str]:
    """Return the commands of code blocks that start with a program, with or without a prompt, each as one line."""
    text = page.read_text().replace("\\\n", "")
    fenced = "\n".join(re.findall(r"^```[a-z]*\n(.*?)^```$", text, flags=re.M | re.S))
    indented = "\n".join(re.findall(r"^    (.*)$", text, flags=re.M))
    lines = (line.removeprefix("$ ") for line in f"{fenced}\n{indented}".splitlines())
    return [line for line in lines if line.startswith(f"{program} ")]


def run(python: str, repository: pathlib.Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, *words], cwd=repository, capture_output=True, text=True)


def program(line: str, known: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `python -m NAME ...` with these words replaced."""
    _, _, module, *words = shlex.split(line)
    return fork_module(module, *(known.get(word, word) for word in words))


@pytest.mark.usefixtures("build_folder")
def test_the_commands_of_the_pipeline_page(python: str, repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    page, settings = repository / "docs" / "pipeline.md", tmp_path / "project.yaml"
    (shown_settings,) = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), flags=re.M | re.S)
    settings.write_text(shown_settings)
    exit_codes = {"python compile.py": 0, "python compile.py --settings project.yaml": 2}
    assert commands(page) == list(exit_codes)
    for line, exit_code in exit_codes.items():
        done = run(python, repository, [str(settings) if word == settings.name else word for word in line.split()[1:]])
        assert done.returncode == exit_code, done.stderr
    shown = re.search(r"^error: (.*)\(nearest: \.\.\.\)$", page.read_text(), flags=re.M)
    assert shown is not None
    assert shown.group(1) in done.stderr


@pytest.mark.slow
def test_the_commands_of_the_page_on_any_training_code(
    python: str, repository: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    page = repository / "docs" / "any-training.md"
    (code,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.M | re.S)
    (tmp_path / "train.py").write_text(code)
    (tmp_path / "compile.py").symlink_to(repository / "compile.py")
    folders = [repository, tmp_path, repository / "packages" / "exact_resume" / "examples"]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    lines = commands(page)
    assert len(lines) == 4
    outputs = []
    for line in (*lines, lines[-1]):
        words = [python if word == "python" else word for word in shlex.split(line)]
        done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        outputs.append(done.stdout)
    assert "model: projects/local-project/locations/us-central1/models/line@1" in outputs[-2]
    # The same run is not trained again.
    assert ["train-unless-finished/train" in each for each in outputs[-2:]] == [True, False]
    assert len(list(tmp_path.glob("runs/training/*/checkpoints"))) == 2


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap mounts /gcs")
@pytest.mark.parametrize("start", ["gs://bucket/", "/gcs/bucket/", "FOLDER/bucket/"])
def test_any_training_code_writes_where_the_service_names_a_bucket_a_mount_or_a_folder(
    python: str, repository: pathlib.Path, tmp_path: pathlib.Path, start: str
) -> None:
    page = repository / "docs" / "any-training.md"
    (code,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.M | re.S)
    words = ["bwrap", "--tmpfs", "/"]
    for each in pathlib.Path("/").iterdir():
        words += ["--symlink", os.readlink(each)] if each.is_symlink() else ["--dev-bind", str(each)]
        words.append(str(each))
    base = start.replace("FOLDER", str(tmp_path))
    variables = {"AIP_CHECKPOINT_DIR": f"{base}checkpoints/", "AIP_MODEL_DIR": f"{base}model/"}
    words += ["--bind", str(tmp_path), "/gcs", "--chdir", str(tmp_path), python, "-c", code]
    done = subprocess.run(words, env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bucket" / "model" / "weights.npy").is_file()
    assert "rmse" in json.loads((tmp_path / "bucket" / "checkpoints" / "result.json").read_text())["metrics"]
    assert [each.name for each in tmp_path.iterdir()] == ["bucket"]


@pytest.mark.slow
def test_the_commands_of_the_training_page(
    repository: pathlib.Path, digits_directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    known = {"DATASET": str(digits_directory), "RUN": str(tmp_path / "one"), "RUN_2": str(tmp_path / "two")}
    lines = commands(repository / "docs" / "training.md")
    assert len(lines) == 2
    for line in lines:
        done = program(line, known)
        assert done.returncode == 0, done.stderr
        assert "is finished: 9 steps" in done.stdout
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("one", "two")]
    assert results[0]["batch_digests"] == results[1]["batch_digests"]


TRAIN_ALL = """
import json, os, pathlib, sys
from tests.support import tiny_base
from trainer import task
from trainer.loop import roles

commands, folder = json.loads(sys.argv[1])
tiny_base.install()
save = lambda: tiny_base.save_weights(pathlib.Path(folder), 16) and 0
for call in (save, *(lambda words=words: task.main(words) for words in commands)):
    if (pid := os.fork()) == 0:
        code = call()
        sys.stdout.flush()
        os._exit(code)
    if status := os.waitpid(pid, 0)[1]:
        sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Each training is a fork, because most of the time would be TensorFlow's import."""


@pytest.mark.soak
@pytest.mark.slow
def test_the_rows_of_the_recipes_page(
    python: str, repository: pathlib.Path, digits_directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    page = repository / "docs" / "recipes.md"
    [line] = commands(page)
    own, phases = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), flags=re.M | re.S)
    (tmp_path / "recipe.yaml").write_text(own)
    recipes.parse(json.dumps(yaml.safe_load(phases)))
    weights = str(tmp_path / "base.weights.h5")
    known = {"DATASET": str(digits_directory), "MODEL": "tiny-base", "FILE": weights}
    known["@recipe.yaml"] = f"@{tmp_path / 'recipe.yaml'}"
    rows = re.findall(r"^\| [^|]* \| `(-.*)` \|$", page.read_text(), flags=re.M)
    assert len(rows) == 5
    words = [shlex.split(line.replace("FLAGS", row)) for row in rows]
    assert all(command[1:3] == ["-m", "trainer.task"] for command in words)
    given = [
        [*({"RUN": str(tmp_path / str(number)), **known}.get(word, word) for word in command[3:]), "--max-steps=2"]
        for number, command in enumerate(words)
    ]
    done = run(python, repository, ["-c", TRAIN_ALL, json.dumps([given, str(tmp_path)])])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("is finished: 2 steps") == len(rows)
    runs = [json.loads((tmp_path / str(number) / "result.json").read_text())["identity"] for number in range(5)]
    assert len({json.dumps(each) for each in runs}) == len(rows)


@pytest.mark.slow
def test_the_commands_of_the_data_page(repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for number, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (60, 8, 8), np.uint8)):
        path = tmp_path / "images" / ("even", "odd")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    folders = {name: str(tmp_path / name) for name in ("FOLDER_1", "FOLDER_2", "STATE")}
    known = {"SOURCE": str(tmp_path / "images"), "NEW_FOLDER": str(tmp_path / "dataset"), **folders}
    for line in commands(repository / "docs" / "data.md"):
        _, _, module, *words = shlex.split(line)
        done = call_module(module, *(known.get(word, word) for word in words))
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "dataset" / "dataset_info.json").exists()


def test_the_commands_of_the_cloud_page(
    python: str,
    repository: pathlib.Path,
    tmp_path: pathlib.Path,
    gcloud_folder: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f"{gcloud_folder}:{os.environ['PATH']}")
    monkeypatch.setenv("GCLOUD_STATE", str(tmp_path / "gcloud.json"))
    up, submit, down = commands(repository / "docs" / "cloud.md")
    assert all("--dry-run" in line for line in (up, submit, down))
    digest = "sha256:" + "b" * 64
    compiled = str(tmp_path / "image_training.json")
    words = ["compile.py", "--image", f"us-docker.pkg.dev/p/r/n@{digest}", "--output-dir", str(tmp_path)]
    assert run(python, repository, words).returncode == 0
    for line, file in ((up, []), (submit, [compiled]), (down, [])):
        done = run(python, repository, [*shlex.split(line)[1:], *file])
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_the_commands_of_the_notifications_page(
    python: str,
    repository: pathlib.Path,
    tmp_path: pathlib.Path,
    gcloud_folder: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = repository / "docs" / "notifications.md"
    for settings in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), flags=re.M | re.S):
        (tmp_path / "project.yaml").write_text(settings)
        words = ["--settings", str(tmp_path / "project.yaml"), "--output-dir", str(tmp_path / "build")]
        assert call(compile.main, words, cwd=repository, program="compile.py").returncode == 0
    # tests/e2e/test_notification.py runs it with a receiver.
    (local,) = commands(page, "IMAGE_TRAINING_WEBHOOK=http://127.0.0.1:9000/hook")
    assert local.endswith(" python -m localvertex run build/image_training.json")
    monkeypatch.setenv("PATH", f"{gcloud_folder}:{os.environ['PATH']}")
    state = tmp_path / "gcloud.json"
    account = "image-training@my-project.iam.gserviceaccount.com"
    state.write_text(json.dumps(empty() | {"accounts": {account: {"description": ""}}}))
    monkeypatch.setenv("GCLOUD_STATE", str(state))
    lines = commands(page, "gcloud")
    assert len(lines) == 3
    for line in lines:
        done = subprocess.run(shlex.split(line), input="https://x/y\n", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    granted = [{"role": "roles/secretmanager.secretAccessor", "members": [f"serviceAccount:{account}"]}]
    assert json.loads(state.read_text())["policies"] == {"secret image-training-webhook": granted}


def test_the_command_of_the_deploying_page(repository: pathlib.Path, compiled_training_for_image: pathlib.Path) -> None:
    page = repository / "docs" / "deploying.md"
    (line,) = commands(page)
    words = [*shlex.split(line)[3:], str(compiled_training_for_image)]
    done = call(pipelines.main, words, cwd=repository, program="pipelines")
    assert done.returncode == 0, done.stderr
    (shown,) = re.findall(r"^\.\.\.\n(.*?)^```$", page.read_text(), flags=re.M | re.S)
    assert shown in done.stderr


@pytest.mark.slow
def test_the_commands_of_the_models_page(
    repository: pathlib.Path, digits_directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    from_a_run, own, export = commands(repository / "docs" / "models.md")
    known = {
        "DATASET": str(digits_directory),
        "NEW_FOLDER": str(tmp_path / "run"),
        "NEW_RUN": str(tmp_path / "new_run"),
    }
    known |= {"MODEL": "trainer.models.custom.separable:build", "run:RUN": f"run:{tmp_path / 'run'}"}
    for line in (own, from_a_run):
        done = program(f"{line} --max-steps=3", known)
        assert done.returncode == 0, done.stderr
    done = program(export, known | {"RUN": str(tmp_path / "run"), "EXPORTED": str(tmp_path / "exported")})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "exported" / "saved_model.pb").exists()


@pytest.mark.slow
def test_the_commands_of_the_schedules_page(repository: pathlib.Path, server: Server, tmp_path: pathlib.Path) -> None:
    image = f"us-docker.pkg.dev/p/r/n@sha256:{'b' * 64}"
    compiled, *lines = commands(repository / "docs" / "schedules.md")
    words = [*shlex.split(compiled)[2:], "--image", image, "--output-dir", str(tmp_path / "build")]
    assert call(compile.main, words, cwd=repository, program="compile.py").returncode == 0
    shutil.copy(repository / "schedules.yaml", tmp_path)
    # The page assumes that the server was started in the same folder.
    (tmp_path / "runs").symlink_to(server.work_dir)
    with server.without_schedules():
        for line in lines:
            _, _, module, *given = shlex.split(line.replace("http://127.0.0.1:8700", server.url))
            done = call(pipelines.main, given, cwd=tmp_path, program=module)
            assert (done.returncode, done.stderr) == (0, ""), line
            assert done.stdout


def anchors(page: pathlib.Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_between_the_pages_resolve(repository: pathlib.Path, page: str) -> None:
    path = repository / page
    targets = re.findall(r"\]\(([^)]+)\)|^\[[^\]]+\]: (\S+)$", path.read_text(), flags=re.M)
    wrong = []
    for target in (first or second for first, second in targets):
        name, _, anchor = target.partition("#")
        found = path.parent / name if name else path
        if "://" not in target and (not found.exists() or (anchor and anchor not in anchors(found))):
            wrong.append(target)
    assert wrong == []


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    """Return the files of the repository, without what `make demo` writes, and their folders."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [pathlib.Path(each) for each in listed.split("\0")]
    return {str(path) for file in files for path in (file, *file.parents)}


ONLY_HERE = re.compile(r"`make |\bbuild/\w+\.(?:json|yaml)|\bpython -m (?:trainer|pipelines|benchmarks|tests)\b")


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("packages/")])
def test_a_page_of_a_package_names_no_file_that_only_the_repository_has(page: str, tracked: set[str]) -> None:
    path, package = ROOT / page, ROOT.joinpath(*page.split("/")[:2])
    text = path.read_text()
    links = re.findall(r"\]\(([^)#\s]+)", text)
    outside = [each for each in links if "://" not in each and package not in (path.parent / each).resolve().parents]
    assert outside == []
    words = {each for each in re.findall(r"(?<![\w/:.-])[\w.-]+(?:/[\w.-]+)+|[\w-]+\.\w+", text) if each[-1] != "."}
    assert [each for each in sorted(words) if os.path.normpath(each) in tracked and not (package / each).exists()] == []
    assert ONLY_HERE.findall(text) == []


def test_what_programs_read_first_has_at_most_40_lines(repository: pathlib.Path) -> None:
    assert len((repository / "AGENTS.md").read_text().splitlines()) <= 40


def test_the_table_of_supported_versions_is_that_of_the_metadata() -> None:
    assert versions.page() == versions.PAGE.read_text(), "run python -m tests.versions"
    assert "| kfp | `==2.17.0` |" in versions.table()


def test_of_the_cloud_commands_of_the_readme_only_the_first_needs_no_container_image(
    python: str, repository: pathlib.Path, compiled_training: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "build").mkdir()
    shutil.copy(compiled_training, tmp_path / "build" / "image_training.json")
    shutil.copy(repository / "schedules.yaml", tmp_path)
    lines = re.findall(
        r"^\$ \.venv/bin/python (.*--project my-project.*)$", (repository / "README.md").read_text(), re.M
    )
    variables = os.environ | {"PYTHONPATH": str(repository), "PATH": str(tmp_path)}
    codes = []
    for line in lines:
        words = [str(repository / word) if word == "cloud.py" else word for word in shlex.split(line)]
        done = subprocess.run([python, *words], cwd=tmp_path, env=variables, capture_output=True, text=True)
        codes.append(done.returncode)
        assert done.returncode == 0 or ("placeholder" in done.stderr and len(done.stderr.splitlines()) == 1)
    assert codes == [0, 2, 2]


_SHORT = {"L": "packages/localvertex/localvertex", "B": "packages/localvertex/localvertex/_base"}
_SHORT |= {"E": "packages/exact_resume/exact_resume"}


def test_the_page_on_architecture_names_what_exists() -> None:
    """Each path is there, and a name behind a path is defined in that file."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    found = re.findall(r"`([\w./]+/[\w./]*|compile\.py)`(?: \(?`(\w+)`)?", text)
    assert len(found) > 40
    for path, name in found:
        first, _, rest = path.partition("/")
        file = ROOT / _SHORT.get(first, first) / rest
        assert file.exists(), path
        if name:
            assert re.search(rf"^(class|def) {name}\b", file.read_text(), flags=re.M), (path, name)


def test_a_change_of_each_kind_has_the_files_of_the_page() -> None:
    """What exists of each kind is named in the files of its row, and beside them only by code that uses it."""
    localvertex, prove = "packages/localvertex/localvertex", "packages/localvertex/localvertex/prove/disturbance.py"
    examples = {
        "A Google operation": ("ModelGetExecutor", [localvertex], set()),
        "A fault of a replica": ("Action.MAINTENANCE", [localvertex], {prove}),
        "A column of the console's list": ('Field("pipeline"', [localvertex], set()),
        "A hyperparameter": (
            "warmup_fraction",
            ["components", "pipelines", "trainer"],
            {"trainer/learner/optimizers.py", "trainer/models/recipes.py"},
        ),
    }
    text = (ROOT / "docs" / "architecture.md").read_text()
    for kind, (word, folders, users) in examples.items():
        row = re.search(rf"^- {kind}: (.*?)(?=^- )", text, flags=re.M | re.S)
        assert row is not None, kind
        files = [
            re.sub(r"^[LBE](?=/)", lambda match: _SHORT[match[0]], each) for each in re.findall(r"`(\S+/\S*)`", row[1])
        ]
        paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if word in path.read_text()]
        named = {str(path.relative_to(ROOT)) for path in paths}
        of_row = {each for each in named if any(each == file or each.startswith(f"{file}") for file in files)}
        assert named - of_row == users, kind
        # A file of the row that is code is needed.
        assert {file for file in files if file.endswith(".py")} <= of_row, kind
