"""`plan` resolves run:ID and model:NAME@ALIAS once: to the SHA-256 of the weights, which it copies."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from components.registry.labels import PROJECT_LABEL
from components.train import starting_weights
from components.train.starting_weights import Start
from exact_resume.checkpoints import checkpoints
from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from localvertex.credentials.isolation import NoCredentials
from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions
from tests.support.finished import write_finished_run
from trainer import task
from trainer.checkpoints import variables
from trainer.checkpoints.identity import identity, run_id
from trainer.config import TrainConfig, from_namespace
from trainer.data.dataset import Dataset
from trainer.data.splits import SPLITS
from trainer.models import models
from trainer.results import saved_model
from vertex_testing.own_endpoint import reachable

CONFIG = TrainConfig(epochs=1, max_steps=1, global_batch_size=8)


def dataset(*classes: str, image_size: int = 16) -> Dataset:
    """Return a dataset whose images nothing reads."""
    return Dataset(
        directory="/nowhere",
        class_names=classes,
        image_size=image_size,
        fingerprint="".join(classes),
        num_examples=dict.fromkeys(SPLITS, 8),
        shards={},
        statistics={},
    )


def network(data: Dataset) -> keras.Model:
    keras.utils.set_random_seed(7)
    return models.build("convnet", image_size=data.image_size, num_classes=data.num_classes)


def finish(training: Path, data: Dataset, **changes: Any) -> str:
    """Write a finished run; return its id."""
    run_identity, name = identity(CONFIG, data.fingerprint, "") | changes, run_id(CONFIG, data.fingerprint, "")
    arrays = variables.values(network(data).variables)
    model = {"class_names": list(data.class_names), "image_size": data.image_size, "num_variables": len(arrays)}
    write_finished_run(
        str(training / name / "checkpoints"),
        run_id=name,
        identity=run_identity,
        accuracy=0.5,
        # The optimizer's variables follow the network's.
        arrays=[*arrays, np.ones(3)],
        model=model,
    )
    return name


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """The folder of all runs below the pipeline root, which is the work folder of a local run."""
    return tmp_path / "training"


@pytest.fixture
def resolve(training: Path) -> Callable[..., tuple[TrainConfig, Start]]:
    """Resolve `weights` for a dataset."""

    def call(weights: str, data: Dataset, **changes: Any) -> tuple[TrainConfig, Start]:
        config = TrainConfig(**(CONFIG.to_dict() | {"weights": weights} | changes))
        return starting_weights.resolve(config, data, training=str(training), region="us-central1")

    return call


def test_the_configuration_holds_the_digest_and_the_trainer_finds_the_copy(resolve: Any, training: Path) -> None:
    old, new = dataset("cat", "dog"), dataset("cat", "cow", "dog")
    name = finish(training, old)
    config, start = resolve(f"run:{name}", new)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", config.weights)
    assert start.description == f"run:{name} is {config.weights}: 2 of 3 classes keep their rows; new: cow"
    options = task.parser().parse_args([*config.to_flags(), *start.flags])
    assert from_namespace(options) == config
    copy = starting_weights.starting_weights.read(options.starting_weights, config.weights)
    assert copy.class_names == ("cat", "dog")
    # Resolved again, and by its digest, it is the same.
    assert resolve(f"run:{name}", new) == (config, start)
    assert resolve(config.weights, new)[0] == config


def test_a_deleted_run_is_started_from_by_the_digest_of_its_copy_and_never_from_scratch(
    resolve: Any, training: Path
) -> None:
    data = dataset("cat", "dog")
    name = finish(training, data)
    config, start = resolve(f"run:{name}", data)
    shutil.rmtree(training / name)
    with pytest.raises(UserError, match=r"no finished run in .* that an earlier plan has copied, give their sha256"):
        resolve(f"run:{name}", data)
    found, copied = resolve(config.weights, data)
    assert (found, copied.flags) == (config, start.flags)
    (copy,) = (training / "weights").glob("*/step-000000000/variables.npz")
    copy.write_bytes(copy.read_bytes()[:-1] + b"?")
    with pytest.raises(UserError, match="no step has been trained"):
        resolve(config.weights, data)


def test_a_damaged_copy_is_written_again(resolve: Any, training: Path) -> None:
    data = dataset("cat", "dog")
    name = finish(training, data)
    config, start = resolve(f"run:{name}", data)
    (copy,) = (training / "weights").glob("*/step-000000000/variables.npz")
    intact = copy.read_bytes()
    copy.write_bytes(b"")
    assert resolve(f"run:{name}", data) == (config, start)
    assert copy.read_bytes() == intact


def test_an_intact_copy_is_not_written_again_and_one_of_other_weights_is(resolve: Any, training: Path) -> None:
    data = dataset("cat", "dog")
    name = finish(training, data)
    config, start = resolve(f"run:{name}", data)
    (folder,) = (training / "weights").glob("*/step-000000000")
    before = [path.stat().st_ino for path in sorted(folder.iterdir())]
    assert resolve(f"run:{name}", data) == (config, start)
    assert [path.stat().st_ino for path in sorted(folder.iterdir())] == before
    found = checkpoints.load(str(folder.parent), 0)
    shutil.rmtree(folder)
    others = [array + 1 if array.dtype.kind == "f" else array for array in found.arrays]
    checkpoints.save(str(folder.parent), dataclasses.replace(found, arrays=others))
    assert resolve(f"run:{name}", data) == (config, start)
    assert starting_weights.starting_weights.read(str(folder.parent), config.weights).digest == config.weights


@pytest.mark.parametrize(
    ("changes", "data", "message"),
    [
        ({"model": "mnist-cnn"}, dataset("cat", "dog", image_size=18), "belong to the network convnet"),
        ({}, dataset("cat", "dog", image_size=32), r"logits/kernel has shape \(1024, 2\), but \(256, 2\)"),
    ],
)
def test_other_networks_and_shapes_are_refused_in_one_line(
    resolve: Any, training: Path, changes: dict[str, Any], data: Dataset, message: str
) -> None:
    name = finish(training, dataset("cat", "dog"))
    with pytest.raises(UserError, match=message) as caught:
        resolve(f"run:{name}", data, **changes)
    assert "\n" not in str(caught.value)
    assert not (training / "weights").exists() or not list((training / "weights").glob("*/step-*"))


def test_runs_that_cannot_be_started_from_are_refused(resolve: Any, training: Path) -> None:
    data = dataset("cat", "dog")
    name = finish(training, data)
    result = training / name / "checkpoints" / "result.json"
    result.unlink()
    with pytest.raises(UserError, match="no finished run"):
        resolve(f"run:{name}", data)
    with pytest.raises(UserError, match="names no training run; use the name of a folder in "):
        resolve("run:../../elsewhere", data)


@pytest.mark.slow
def test_the_same_weights_by_two_names_are_the_same_run_and_a_moved_alias_is_another(
    resolve: Any, training: Path, tmp_path: Path
) -> None:
    data = dataset("cat", "dog")
    name = finish(training, data)
    first, second = tmp_path / "export-1", tmp_path / "export-2"
    names, metadata = list(data.class_names), {"model": "convnet"}
    saved_model.write(network(data), str(first), class_names=names, image_size=16, metadata=metadata, seen_images=None)
    shutil.copytree(first, second)
    # The same values for other classes are other weights.
    described = second / "assets.extra" / "model.json"
    described.write_text(json.dumps(json.loads(described.read_text()) | {"class_names": names[::-1]}))
    for files in (first, second):
        registry.add(tmp_path, {"display_name": "pets", "artifact_uri": str(files), "labels": dict([PROJECT_LABEL])})
    versions = ModelVersions.of(tmp_path, "pets")
    versions.merge("1", ["champion"])
    with reachable(tmp_path):
        by_run, by_alias, by_number = [
            resolve(each, data)[0] for each in (f"run:{name}", "model:pets@champion", "model:pets@1")
        ]
        assert by_run == by_alias == by_number
        versions.merge("2", ["champion"])
        moved = resolve("model:pets@champion", data)[0]
        assert moved == resolve("model:pets@2", data)[0] != by_run
        with pytest.raises(UserError, match="has no version 'best'"):
            resolve("model:pets@best", data)


@pytest.mark.slow
def test_a_local_run_asks_no_one_with_the_users_credentials(tmp_path: Path) -> None:
    """A local run may have a gs:// root; what it finds there is no login."""
    key = tmp_path / "key.json"
    key.write_text(
        json.dumps({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"})
    )
    program = (
        "import sys; from trainer.command_line import report_errors; from components.registry.registry import Registry;"
        "report_errors(Registry(region='us-central1', pipeline_root='gs://bucket/root').version)('pets', 'champion')"
    )
    held = NoCredentials()
    try:
        environment = held.environment({**os.environ, "GOOGLE_APPLICATION_CREDENTIALS": str(key)})
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program], env=environment, capture_output=True, text=True
        )
    finally:
        held.close()
    assert done.returncode == 2, done.stderr
    assert "error: the registered models cannot be listed" in done.stderr
    assert "models was not sent: localvertex does not answer it" in done.stderr
    assert storage.exists(key)
