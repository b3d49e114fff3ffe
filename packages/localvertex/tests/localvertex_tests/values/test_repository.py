"""A module's name is not a package's name: only what the user or the table names is proposed from an index."""

import csv
import tomllib
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from localvertex_tests.processes.test_environments import make_wheel

import localvertex
from localvertex.__main__ import main
from localvertex.runner import engine
from localvertex.values import configuration, repository
from localvertex.values.configuration import toml
from localvertex.values.repository import Repository
from vertex_testing.runs import Command, Compile, Execute

IMAGE = "gcr.io/project/train:1"
INSTALLS = "python3 -m pip install --quiet --no-warn-script-location "


def at(folder: Path, *scripts: str) -> Repository:
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    (folder / "pipelines" / "build").mkdir(parents=True, exist_ok=True)
    return Repository(file=folder / "pipelines" / "build" / "p.yaml", scripts=scripts)


def test_a_module_that_nothing_names_has_no_package(tmp_path: Path) -> None:
    found = at(tmp_path, INSTALLS + "'pandas==2.2.3' 'kfp==2.17.0' && \"$0\" \"$@\"")
    modules = ("vertex", "utils", "google", "google.cloud", "google.cloud.absent", "kfp.absent", "pandas.absent", "")
    assert [found.package_of(module) for module in modules] == [""] * len(modules)
    assert Repository().package_of("vertex") == ""


def test_the_table_names_what_differs_and_what_is_well_known() -> None:
    for module, package in (
        ("sklearn", "scikit-learn"),
        ("cv2", "opencv-python-headless"),
        ("PIL", "pillow"),
        ("yaml", "PyYAML"),
        ("bs4", "beautifulsoup4"),
        ("google.cloud.bigquery", "google-cloud-bigquery"),
        ("google.cloud.secretmanager.absent", "google-cloud-secret-manager"),
        ("numpy", "numpy"),
    ):
        assert Repository().package_of(module) == package
    with Path(repository.__file__).with_name("distributions.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert all(row["source"].startswith("https://") and row["checked"] > "2026" for row in rows)
    assert len({(row["module"], row["distribution"]) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    "script",
    [
        INSTALLS + '\'vertex[gpu]>=1.2, <2; python_version>"3"\' && python3 -m pip install \'kfp\' && "$0" "$@"',
        "pip3 install -q --no-deps vertex[gpu]>=1.2,<2",
    ],
)
def test_the_pipeline_names_a_package_with_its_version(script: str) -> None:
    assert Repository(scripts=("true", script)).package_of("vertex") == "vertex[gpu]>=1.2,<2"


@pytest.mark.parametrize(
    "script",
    [
        INSTALLS + "'vertex @ git+https://example.com/vertex'",
        INSTALLS + "/wheels/vertex-1.0-py3-none-any.whl",
        INSTALLS + "--index-url https://example.com/simple 'vertex'",
        INSTALLS + "'vertex' --extra-index-url=https://example.com/simple",
        INSTALLS + "-r vertex",
        INSTALLS + "'vertex",
        "echo vertex",
    ],
)
def test_what_the_pipeline_takes_from_elsewhere_is_not_asked_of_the_index(script: str) -> None:
    assert Repository(scripts=(script,)).package_of("vertex") == ""


FILES = {
    "requirements.txt": "# comment\n-r other.txt\nvertex == 1.2  # why\n",
    "requirements-dev.txt": "Vertex==1.2 \\\n    --hash=sha256:00\n",
    "requirements/cpu.txt": 'vertex==1.2; python_version > "3"\n',
    "pipelines/requirements.txt": "vertex==1.2",
    "pyproject.toml": '[project]\nname = "own"\ndependencies = ["vertex==1.2"]\n',
    "pipelines/pyproject.toml": '[project]\nname = "own"\noptional-dependencies.all = ["own[x]", "vertex==1.2"]\n',
    "pipelines/build/pyproject.toml": '[dependency-groups]\ndev = [{include-group = "test"}, "vertex==1.2"]\n',
    "setup.py": "NEEDED = ['vertex==1.2']\nsetup(name='own', install_requires=NEEDED)\n",
    "pipelines/setup.py": "setup(name='own', extras_require={'test': ['vertex==1.2', 'own[x]']}, packages=find())\n",
    "setup.cfg": "[options]\ninstall_requires =\n  vertex==1.2\n",
    "pipelines/setup.cfg": "[options.extras_require]\nall =\n  vertex==1.2\n",
}


@pytest.mark.parametrize("name", FILES)
def test_the_repository_names_a_package(tmp_path: Path, name: str) -> None:
    found = at(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(FILES[name])
    assert found.package_of("vertex").lower() == "vertex==1.2"
    assert found.package_of("test") == found.package_of("own") == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nname = "vertex"\noptional-dependencies.all = ["vertex[x]"]\n'),
        ("setup.cfg", "[metadata]\nname = vertex\n[options.extras_require]\nall = vertex[x]\n"),
        ("pyproject.toml", '[project]\ndependencies = ["vertex"]\n[tool.uv.sources]\nvertex = {path = "../v"}\n'),
        ("pyproject.toml", '[project]\ndependencies = ["vertex"]\n[[tool.uv.index]]\nurl = "https://example.com"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\nvertex = {path = "../vertex"}\n'),
        ("pyproject.toml", '[project]\ndependencies = "vertex"\n[tool]\nuv = 1\n'),
        ("pyproject.toml", "[project\ndependencies = ['vertex']"),
        ("setup.cfg", "vertex"),
        ("setup.py", "setup(name='vertex', extras_require={'all': ['vertex[x]']})\n"),
        ("setup.py", "setup(install_requires={'vertex': []})\n"),
        ("setup.py", "setup(install_requires=['vertex'"),
        ("requirements.txt", "--extra-index-url https://example.com/simple\nvertex==1.2\n"),
        ("requirements.txt", "vertex @ https://example.com/vertex.whl\n-e ./vertex\n./vertex\n"),
        ("requirements.txt", "vertex\n-f /wheels\n"),
    ],
)
def test_what_the_repository_has_itself_or_takes_from_elsewhere_is_not_asked_of_the_index(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    assert at(tmp_path).package_of("vertex") == ""


def test_another_index_does_not_hide_the_table_and_a_named_version_comes_before_it(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("opencv-python==4.9\n")
    assert at(tmp_path).package_of("cv2") == "opencv-python==4.9"
    (tmp_path / "requirements.txt").write_text("--index-url https://example.com\nopencv-python==4.9\n")
    assert at(tmp_path).package_of("cv2") == "opencv-python-headless"


def test_only_the_repository_of_the_file_counts(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("vertex\n")
    assert at(tmp_path / "inner").package_of("vertex") == ""
    # Without .git, only the file's own folder.
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "requirements.txt").write_text("vertex\n")
    file = tmp_path / "a" / "b" / "p.yaml"
    assert Repository(file=file).package_of("vertex") == ""
    # A folder that the user names as an image's source counts as well.
    assert Repository(file=file, sources=(tmp_path / "a",)).package_of("vertex") == "vertex"


def importing(image: str = IMAGE) -> Any:
    @dsl.component(base_image=image, install_kfp_package=False)
    def learn() -> None:
        import sklearn_absent  # noqa: F401
        import vertex  # noqa: F401

    @dsl.pipeline(name="learns")
    def learns() -> None:
        learn()

    return learns


def test_a_refusal_proposes_what_is_named_as_package_and_the_rest_as_source_in_one_table(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(compiled(importing()))
    assert tomllib.loads(refused.value.proposal) == {"image": {IMAGE: {"path": "path/to/source"}}}
    assert not any("packages" in reason for reason in refused.value.reasons)
    file = compiled(importing())
    file.with_name("requirements.txt").write_text("sklearn-absent==1.0\n")
    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(file)
    table = {"path": "path/to/source", "packages": ["sklearn-absent==1.0"]}
    assert tomllib.loads(refused.value.proposal) == {"image": {IMAGE: table}}
    file.with_name("vertex").mkdir()
    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(file)
    assert any(reason.endswith(f'path = "{file.parent.relative_to(tmp_path)}"') for reason in refused.value.reasons)


CODE = {
    "main.py": "from pkg import steps\nimport here, json\nsteps.run()\n",
    "here.so": "",
    "pkg/__init__.py": "from .inner.deep import value  # not by pip\n",
    "pkg/steps.py": "import vertex_absent.part\ntry:\n    import optional_absent\nexcept ImportError:\n    pass\n",
    "pkg/inner/deep.py": "from ..near import value\nimport box_absent\n",
    "pkg/near.py": "import yaml_absent as yaml\ndef late():\n    import late_absent\n",
    "setup.py": "REQUIRED = ['vertex-absent>=2']\nsetup(name='pkg', install_requires=REQUIRED)\n",
    "requirements.txt": "yaml_absent==1.0\n",
}


@pytest.mark.parametrize("command", [["python", "/app/main.py"], ["python3", "-m", "main"]])
def test_all_modules_that_a_code_folder_lacks_are_proposed_at_once(
    compiled: Compile, tmp_path: Path, command: list[str]
) -> None:
    """Those that a file names as packages, the others by their own name."""
    for name, text in CODE.items():
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text(text)

    @dsl.container_component
    def fit():  # noqa: ANN202
        return dsl.ContainerSpec(image=IMAGE, command=command)

    @dsl.pipeline(name="fits")
    def fits() -> None:
        fit()

    path, file = compiled(fits), tmp_path / "localvertex.toml"
    file.write_text(f'[image.{toml(IMAGE)}]\npath = "src"\n')
    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(path, localvertex.Options(configuration=configuration.read(file)))
    packages = ["vertex-absent>=2", "yaml_absent==1.0"]
    assert tomllib.loads(refused.value.proposal) == {"image": {IMAGE: {"path": "src", "packages": packages}}}
    assert [each for each in ("box_absent", "optional_absent", "late_absent") if each in str(refused.value)] == [
        "box_absent"
    ]
    # What is installed then is not known before, and neither is what code finds by itself.
    file.write_text(refused.value.proposal.partition("  #")[0] + "\n" + 'path = "src"\npackages = ["other"]\n')
    engine.open_file(path, localvertex.Options(configuration=configuration.read(file)))
    file.write_text(f'[image.{toml(IMAGE)}]\npath = "src"\n')
    (tmp_path / "src" / "pkg" / "near.py").write_text("import sys\nsys.path.append('x')\n")
    engine.open_file(path, localvertex.Options(configuration=configuration.read(file)))


def test_a_package_that_shares_its_folder_is_known_before_the_run(compiled: Compile) -> None:
    @dsl.component(base_image=IMAGE, install_kfp_package=False)
    def watch() -> None:
        from google.cloud import firestore, storage  # noqa: F401

    @dsl.pipeline(name="watches")
    def watches() -> None:
        watch()

    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(compiled(watches))
    assert tomllib.loads(refused.value.proposal) == {"image": {IMAGE: {"packages": ["google-cloud-firestore"]}}}


def test_a_source_folder_that_the_repository_has_is_followed_at_once(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder comes before the example of one, which a module without a package has."""
    monkeypatch.chdir(tmp_path)
    file = compiled(importing())
    (tmp_path / "vertex").mkdir()
    (tmp_path / "vertex" / "__init__.py").write_text("from .inner import value\n")
    (tmp_path / "vertex" / "inner.py").write_text("import yaml_absent\nimport a_absent\n")
    (tmp_path / "requirements.txt").write_text("yaml_absent==1.0\n")
    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(file)
    assert tomllib.loads(refused.value.proposal) == {"image": {IMAGE: {"path": ".", "packages": ["yaml_absent==1.0"]}}}
    # What is found there may find more, but not what the step itself imports.
    (tmp_path / "vertex" / "inner.py").write_text("import sys\nsys.path.append('x')\nimport yaml_absent\n")
    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(file)
    assert tomllib.loads(refused.value.proposal) == {"image": {IMAGE: {"path": "."}}}


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def learn() -> int:
    import vertex

    return int(vertex.VALUE)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def use(value: int) -> None:
    import vertex

    print(vertex.VALUE + value)


@dsl.pipeline(name="uses")
def uses() -> None:
    use(value=learn().output)


@pytest.mark.slow
def test_steps_that_would_fail_for_the_same_module_are_proposed_together(
    compiled: Compile, command: Command, tmp_path: Path
) -> None:
    path, wheel = compiled(uses), make_wheel(tmp_path, "1.5")
    (tmp_path / "vertex").mkdir()
    (tmp_path / "vertex" / "__init__.py").write_text("import tinypkg\nimport box_absent\n")
    text = f'[image.{toml(IMAGE)}]\npath = "."\npackages = [{toml(wheel)}]\n'
    (tmp_path / "localvertex.toml").write_text(text)
    done = command("run", path, PIP_NO_INDEX="1")
    proposal = done.stdout.partition("run the file again:\n\n")[2].partition("\n\nresume: ")[0]
    assert done.returncode == 1, done.stderr
    assert tomllib.loads(proposal) == {"step": {"learn": {"outputs": {"Output": 1}}, "use": {"outputs": {}}}}


def trains(words: Any) -> Any:
    container = {"image_uri": IMAGE, "command": ["python", "/app/main.py"], "args": words}
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
    return CustomTrainingJobOp(display_name="train", project="p", worker_pool_specs=[pool])


@pytest.mark.parametrize("is_late", [False, True])
def test_a_module_that_a_replica_lacks_is_proposed_for_its_own_image(
    compiled: Compile, command: Command, tmp_path: Path, is_late: bool
) -> None:
    @dsl.pipeline(name="trains")
    def training(words: list) -> None:
        # Nothing is known of the words.
        trains(["a"] if is_late else words)

    path, file = compiled(training), tmp_path / "localvertex.toml"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text(
        "if True:\n    import vertex_absent\n" if is_late else "import vertex_absent"
    )
    (tmp_path / "requirements.txt").write_text("vertex_absent==1.0\n")
    file.write_text(f'[image.{toml(IMAGE)}]\npath = "src"\n')
    done = command("run", path, *(["--parameter", "words=[]"] if is_late else []))
    output, before = (done.stdout, "run the file again:\n\n") if is_late else (done.stderr, "localvertex.toml:\n\n")
    proposal = output.partition(before)[2].partition("\n\nresume: ")[0]
    assert done.returncode == (1 if is_late else 2), done.stdout
    tables = tomllib.loads(proposal)
    assert tables["image"] == {IMAGE: {"path": "src", "packages": ["vertex_absent==1.0"]}}


def test_init_writes_no_package_that_nothing_names(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(importing(), "learns.yaml")
    monkeypatch.chdir(tmp_path)
    assert main(["init", "."]) == 0
    assert f'[image."{IMAGE}"]' in Path("localvertex.toml").read_text()
    assert "packages" not in Path("localvertex.toml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import vertex", 'path = "FOLDER"'),
        ("import yaml_absent.inner", 'packages = ["yaml_absent==1.0"]'),
        ("from google.cloud import firestore", 'packages = ["google-cloud-firestore"]'),
        ("import google.cloud.firestore", 'packages = ["google-cloud-firestore"]'),
        ("from google.cloud import absent", 'path = "FOLDER"'),
        ("import google.absent", 'path = "FOLDER"'),
        (
            """raise ValueError("Please install the 'db-dtypes' package to use this function.")""",
            'packages = ["db-dtypes"]',
        ),
        ("""raise ImportError("Please install gcsfs to access Google Storage")""", 'packages = ["gcsfs"]'),
        ("""raise ImportError("Missing optional dependency 'pyarrow'. Use pip")""", 'packages = ["pyarrow"]'),
    ],
)
def test_a_failure_proposes_the_same(
    compiled: Compile, execute: Execute, statement: str, expected: str, tmp_path: Path
) -> None:
    @dsl.component(base_image=IMAGE, install_kfp_package=False)
    def learn(statement: str) -> None:
        exec(statement)

    @dsl.pipeline(name="learns")
    def learns(statement: str) -> None:
        learn(statement=statement)

    file = compiled(learns)
    file.with_name("requirements.txt").write_text("yaml_absent==1.0\n")
    record = execute(file, parameters={"statement": statement})
    assert record["state"] == "FAILED"
    assert expected in record["error"]
    assert ("packages" in record["error"]) == ("packages" in expected)
