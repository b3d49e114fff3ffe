"""A proposal is right when it is pasted: no pipeline sees one twice before it runs or has an end of its own.

Pipelines are mutated at random. What is proposed is put into localvertex.toml, with the names of files and images that
are there in place of the examples.
"""

import random
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.types import artifact_types
from google_cloud_pipeline_components.v1.bigquery import BigqueryQueryJobOp
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

import localvertex
from localvertex._base.userinput.errors import UserError
from localvertex.runner import engine
from localvertex.values import configuration
from localvertex.values.configuration import toml
from vertex_testing.runs import STEP, Command, Compile

MAX_ROUNDS = 12
IMAGE = "europe-docker.pkg.dev/shop/train/train:1"
STEP_IN_IMAGE = {"base_image": IMAGE, "install_kfp_package": False}


@dsl.component(**STEP)
def count(text: str) -> int:
    return len(text)


@dsl.component(**STEP)
def load(rows: int = 1) -> str:
    from google.cloud import bigquery

    return str([*bigquery.Client().list_rows("p.d.t")][:rows])


@dsl.component(**STEP_IN_IMAGE)
def fit(text: str, model: dsl.Output[dsl.Model]) -> float:
    import company_models

    return float(company_models.fit(text, model.path))


@dsl.component(**STEP_IN_IMAGE)
def upload(model: dsl.Output[artifact_types.VertexModel]) -> None:
    import google_cloud_of_the_company

    google_cloud_of_the_company.upload(model.path)


@dsl.container_component
def script(text: str):  # noqa: ANN201
    return dsl.ContainerSpec(image="shop/script:1", command=["python", "/app/main.py"], args=[text])


@dsl.component(base_image="shop/step:4", install_kfp_package=False)
def starts(text: str) -> str:
    import subprocess

    return subprocess.check_output(["python", "/app/src/train.py", text], text=True)


@dsl.container_component
def shell(text: str):  # noqa: ANN201
    return dsl.ContainerSpec(image="shop/shell:5", command=["sh", "-ec", "set -x; python /app/main.py $0"], args=[text])


@dsl.container_component
def entry(text: str, out: dsl.OutputPath(str)):  # type: ignore[valid-type] # noqa: ANN201
    return dsl.ContainerSpec(image="shop/entry:2", args=[text, out])


def query(_: Any, **__: Any) -> Any:
    return BigqueryQueryJobOp(project="p", location="EU", query="SELECT 1")


def job(text: Any, command: list[str]) -> Any:
    pool = {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {"image_uri": "shop/job:3", "command": command, "args": []},
    }
    return CustomTrainingJobOp(display_name="train", worker_pool_specs=[pool]).after(*([text.task] if text else []))


PARTS: list[Callable[[Any, Any], Any]] = [
    lambda text, _: count(text=text),
    lambda _, __: load(),
    lambda text, _: fit(text=text),
    lambda text, _: script(text=text),
    lambda text, _: entry(text=text),
    lambda text, _: starts(text=text),
    lambda text, _: shell(text=text),
    lambda _, __: query(None),
    lambda _, __: upload(),
    lambda _, choice: job(None, choice.choice([[], ["python", "/app/train.py"], ["python", "-c", "pass"]])),
    lambda _, __: dsl.importer(artifact_uri="gs://shop-data/iris.csv", artifact_class=dsl.Dataset),
]


def mutated(seed: int) -> Any:
    """Return a pipeline of a few steps that read each other's texts, with and without defaults and addresses."""
    choice = random.Random(seed)

    def build(first: str, second: str) -> None:
        texts: list[Any] = [first, second, "constant", "gs://shop-models/x"]
        for _ in range(choice.randint(2, 5)):
            task = choice.choice(PARTS)(choice.choice(texts), choice)
            texts += [each for each in task.outputs.values() if getattr(each, "channel_type", "") == "STRING"]
            if choice.random() < 0.4 and "gcp_resources" in task.outputs:
                count(text=task.outputs["gcp_resources"])

    texts = ["", "fixed", "gs://shop-given/y"]
    build.__defaults__ = tuple(choice.sample(texts, choice.randint(0, 2))) or None
    return dsl.pipeline(name=f"mutated-{seed}")(build)


def paste(file: Path, proposal: str) -> None:
    """Put tables into a file, in place of its tables of the same names, as a user does."""
    blocks = {each.partition("\n")[0].partition("  #")[0]: each for each in file.read_text().split("\n\n") if each}
    new = {each.partition("\n")[0].partition("  #")[0]: each for each in proposal.split("\n\n")}
    assert [name for name in new if name in blocks and "# replaces" not in new[name]] == []
    examples = {"path/to/source": "source", "path/to/file": "file.csv", "path/to/model": "model"}
    text = "\n\n".join((blocks | new).values())
    for example, real in examples.items():
        text = text.replace(f'"{example}"', f'"{real}"')
    file.write_text(text)
    tomllib.loads(text)


def rounds_of(path: Path, folder: Path, **values: str) -> list[str]:
    """Paste what is proposed until the pipeline may run, or nothing is proposed; return the proposals."""
    (folder / "source").mkdir(exist_ok=True)
    (folder / "model").mkdir(exist_ok=True)
    (folder / "file.csv").write_text("a,b\n")
    (folder / "localvertex.toml").write_text("")
    seen: list[str] = []
    for _ in range(MAX_ROUNDS):
        refused = refusal_of(path, configuration.read(folder / "localvertex.toml"), values)
        if not isinstance(refused, localvertex.Refused):
            assert refused is None
            return seen
        assert refused.proposal, refused.reasons
        assert refused.proposal not in seen, refused.reasons
        seen.append(refused.proposal)
        paste(folder / "localvertex.toml", refused.proposal)
    raise AssertionError(seen)


def refusal_of(path: Path, found: configuration.Configuration, values: dict[str, str]) -> UserError | None:
    """Return why a pipeline is refused."""
    try:
        engine.check(path, parameters=values, options=localvertex.Options(configuration=found))
    except UserError as error:
        return error
    return None


@pytest.mark.parametrize("seed", range(10))
def test_no_mutated_pipeline_sees_a_proposal_twice(seed: int, compiled: Compile, tmp_path: Path) -> None:
    rounds_of(compiled(mutated(seed)), tmp_path)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 250))
def test_many_mutated_pipelines(seed: int, compiled: Compile, tmp_path: Path) -> None:
    rounds_of(compiled(mutated(seed)), tmp_path)


def run_pasting(path: Path, folder: Path, command: Command) -> list[set[str]]:
    """Run, paste and run again until the run succeeds; return the tables of each proposal."""
    rounds_of(path, folder, first="text", second="text")
    seen: list[str] = []
    for _ in range(MAX_ROUNDS):
        done = command("run", path, "-p", "first=text", "-p", "second=text")
        if done.returncode == 0:
            return [{".".join(each) for each in _names(tomllib.loads(text))} for text in seen]
        proposal = (done.stderr + done.stdout).rpartition("file again:\n\n")[2].partition("\n\nresume: ")[0]
        assert proposal.startswith("["), done.stdout + done.stderr
        assert proposal not in seen
        seen.append(proposal)
        paste(folder / "localvertex.toml", proposal)
    raise AssertionError(seen)


def _names(tables: dict[str, Any]) -> list[tuple[str, str]]:
    return [(kind, name) for kind, table in tables.items() for name in table]


@dsl.component(**STEP_IN_IMAGE)
def late(text: str) -> int:
    if text:
        import company_models

        return int(company_models.number())
    return 0


@dsl.pipeline(name="late-modules")
def late_modules(first: str, second: str) -> None:
    late(text=first)
    load().after(load())
    count(text=second)


@pytest.mark.slow
def test_what_only_the_run_finds_is_proposed_once_and_together(
    command: Command, compiled: Compile, tmp_path: Path
) -> None:
    """Of the image first, then of its step; all steps that call BigQuery are named with the first of them."""
    found = run_pasting(compiled(late_modules), tmp_path, command)
    assert found == [{f"image.{IMAGE}", "step.load", "step.load-2"}, {"step.late"}]


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(30))
def test_what_was_pasted_runs(seed: int, command: Command, compiled: Compile, tmp_path: Path) -> None:
    run_pasting(compiled(mutated(seed)), tmp_path, command)


@dsl.pipeline(name="many")
def many(project: str, epochs: int, source: str = "gs://shop-data/x") -> None:
    load()
    script(text=source)
    entry(text=project)
    fit(text=project)
    query(None)
    job(None, [])
    count(text=f"{epochs}")


def test_one_block_has_all_that_is_known(command: Command, compiled: Compile, tmp_path: Path) -> None:
    done = command("run", compiled(many))
    tables = tomllib.loads(done.stderr.partition("add to localvertex.toml:\n\n")[2])
    assert done.returncode == 2
    assert {*tables["step"]} == {"load", "bigquery-query-job"}
    assert {*tables["image"]} == {"shop/script:1", "shop/entry:2", "shop/job:3", IMAGE}
    assert tables["parameters"] == {"project": "text", "epochs": 1}
    assert tables["buckets"] == {"root": "buckets", "create": True}
    assert "command" in tables["image"]["shop/entry:2"]
    assert "command" in tables["image"]["shop/job:3"]
    assert not (tmp_path / "runs").exists()


@dsl.pipeline(name="reads-resources")
def reads_resources() -> None:
    count(text=query(None).outputs["gcp_resources"])


def test_an_output_that_is_read_is_proposed_with_a_value(compiled: Compile) -> None:
    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(compiled(reads_resources))
    (table,) = tomllib.loads(refused.value.proposal)["step"].values()
    assert {*table["outputs"]} == {"destination_table", "gcp_resources"}
    assert table["outputs"]["gcp_resources"] == '{"resources": []}'


@dsl.pipeline(name="gives-all")
def gives_all() -> None:
    fit(text="a")


def test_what_the_file_has_stays_and_a_given_step_needs_no_image(compiled: Compile, tmp_path: Path) -> None:
    """The image has a source already, in which the module is not: the step is given, and the image not named again."""
    (tmp_path / "source").mkdir()
    file = tmp_path / "localvertex.toml"
    file.write_text(f'[image.{toml(IMAGE)}]\npath = "source"\n')
    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(compiled(gives_all), localvertex.Options(configuration=configuration.read(file)))
    assert tomllib.loads(refused.value.proposal) == {
        "step": {"fit": {"outputs": {"Output": 0.5, "model": "path/to/file"}}}
    }


@dsl.pipeline(name="needs-two")
def needs_two(first: str, second: str) -> None:
    count(text=first).after(count(text=second))


def test_missing_parameters_alone_are_a_block_to_paste(compiled: Compile, tmp_path: Path, command: Command) -> None:
    path = compiled(needs_two)
    refused = command("run", path, "--parameter", "second=given")
    assert (refused.returncode, refused.stdout) == (2, "")
    proposal = refused.stderr.partition("add to localvertex.toml:\n\n")[2]
    assert tomllib.loads(proposal) == {"parameters": {"first": "text"}}
    (tmp_path / "localvertex.toml").write_text(proposal)
    assert command("run", path, "--parameter", "second=given").returncode == 0


@dsl.component(**STEP_IN_IMAGE)
def fit_late(number: int) -> int:
    import importlib

    return int(importlib.import_module("company_models").number()) + number


@dsl.pipeline(name="late-package")
def late_package() -> None:
    fit_late(number=1)


def test_a_path_stays_as_it_was_written(compiled: Compile, tmp_path: Path, command: Command) -> None:
    """The folder of the file itself, too, which would be absolute in another repository."""
    path = compiled(late_package)
    (tmp_path / "requirements.txt").write_text("company-models==1.0\n")
    (tmp_path / "localvertex.toml").write_text(f'[image."{IMAGE}"]\npath = "."\n')
    failed = command("run", path)
    proposal = failed.stdout.partition("file again:\n\n")[2].partition("\n\nresume: ")[0]
    assert failed.returncode == 1
    assert tomllib.loads(proposal)["image"][IMAGE] == {"path": ".", "packages": ["company-models==1.0"]}


@dsl.component(**STEP)
def store(text: str) -> None:
    from google.cloud import storage

    try:
        storage.Client().bucket("shop-in-the-code").blob("model").upload_from_string(text)
    except Exception as error:
        # The proposal needs no sentence.
        raise RuntimeError(str(error) if "mkdir" in str(error) else "not stored") from None


@dsl.pipeline(name="stores")
def stores() -> None:
    store(text="weights")


def test_a_step_that_asks_for_a_bucket_gets_folders_for_buckets_and_is_not_given(
    compiled: Compile, tmp_path: Path, command: Command
) -> None:
    path = compiled(stores)
    failed = command("run", path)
    proposal = failed.stdout.partition("file again:\n\n")[2].partition("\n\nresume: ")[0]
    assert tomllib.loads(proposal) == {"buckets": {"root": "buckets", "create": True}}
    (tmp_path / "localvertex.toml").write_text(proposal)
    # What is missing then is a folder, and the error has the command that makes it.
    again = command("run", path)
    assert (again.returncode, "file again:" in again.stdout) == (1, False)
    (made,) = set(re.findall(r"mkdir -p (\S+?)[\"\s]", again.stdout))
    Path(made).mkdir(parents=True)
    assert command("run", path).returncode == 0
    assert (Path(made) / "model").read_text() == "weights"
