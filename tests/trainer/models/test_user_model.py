"""A user's own network: found by name, checked, part of the run's identity, evaluated and exported like the others."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from localvertex._base.userinput.errors import UserError
from tests.support.forks import fork_module
from trainer.checkpoints import identity as run_identity
from trainer.config import TrainConfig
from trainer.models import models, user_model

if TYPE_CHECKING:
    from trainer.data.examples import Examples
    from trainer.data.sampler import Sampler

MODEL = """
import keras
from keras import layers

def build(*, image_size, num_classes, weights):
    images = keras.Input((image_size, image_size, 3), dtype="{dtype}")
    hidden = layers.Flatten()(layers.Rescaling(1 / 255)(images))
    outputs = layers.Dense({units}, activation={activation!r}, dtype="float32")(hidden)
    return keras.Model(images, outputs)

def number(**options):
    return 3

def failing(**options):
    raise RuntimeError("two\\nlines")

def narrow(image_size):
    return None
"""
Writer = Callable[..., str]
GOOD = {"dtype": "uint8", "units": "num_classes", "activation": "softmax"}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    """Write a module to a folder on Python's path; each test uses another name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def written(name: str, text: str | None = None, **changes: str) -> str:
        (tmp_path / f"{name}.py").write_text(text or MODEL.format(**{**GOOD, **changes}))
        return name

    yield written
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.parametrize(
    ("number", "model", "expected"),
    [
        (1, "nowhere.net:build", "module 'nowhere' not found in"),
        (2, "{0}.net:build", "module '{0}.net' not found in"),
        (3, "{0}:make", "has no function 'make'; it has: build, failing, narrow, number"),
        (4, "{0}:number", "returned int; expected a keras.Model"),
        (
            5,
            "{0}:failing",
            "called with image_size=16, num_classes=3, weights='none', failed: RuntimeError: two lines (",
        ),
        (6, "{0}:narrow", "failed: TypeError: narrow() got an unexpected keyword argument"),
    ],
)
def test_what_is_wrong_with_the_function_is_one_line(write: Writer, number: int, model: str, expected: str) -> None:
    module = write(f"own{number}")
    with pytest.raises(UserError) as caught:
        models.build(model.format(module), image_size=16, num_classes=3)
    assert expected.format(module) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "changes", "expected"),
    [
        (1, {"dtype": "float32"}, "a model float32 [None, 16, 16, 3] -> float32 [None, 3]; expected one input uint8"),
        (2, {"units": "num_classes + 1"}, "-> float32 [None, 4]; expected"),
        (3, {"activation": None}, "expected probabilities that add up to 1; end with a softmax"),
        (4, {"text": "import a_package_that_is_not_there"}, "importing made4 failed: ModuleNotFoundError"),
        (5, {"text": "1 / 0"}, "importing made5 failed: ZeroDivisionError: division by zero ("),
    ],
)
def test_what_is_wrong_with_the_network_is_one_line(
    write: Writer, number: int, changes: dict[str, str], expected: str
) -> None:
    module = write(f"made{number}", **changes)
    with pytest.raises(UserError) as caught:
        models.build(f"{module}:build", image_size=16, num_classes=3)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_source_is_another_run(write: Writer) -> None:
    config = TrainConfig(model=f"{write('hashed')}:build")
    first = run_identity.run_id(config, "data", "")
    assert run_identity.run_id(config, "data", "") == first
    write("hashed", MODEL.format(**GOOD) + "# changed\n")
    assert run_identity.run_id(config, "data", "") != first
    assert "hashed" not in sys.modules
    with pytest.raises(UserError, match="module 'nowhere_at_all' not found"):
        run_identity.run_id(TrainConfig(model="nowhere_at_all:build"), "data", "")


def test_a_network_in_custom_is_known_by_the_files_of_that_folder() -> None:
    """A change elsewhere in the trainer must not start a new run."""
    folder = Path(user_model.__file__).parent / "custom"
    expected = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        expected.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    assert user_model.digest("trainer.models.custom.separable:build") == expected.hexdigest()


@pytest.mark.slow
def test_random_numbers_with_a_state_are_refused_with_exact(digits_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "drawing.py").write_text(RANDOM.format(call="x + tf.random.normal((3,))", layers="Layer(),"))
    run = [f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path / 'run'}", "--model=drawing:build"]
    environment = {"PYTHONPATH": str(tmp_path)}
    refused = fork_module("trainer.task", *run, "--max-steps=2", "--exact", **environment)
    assert refused.returncode == 2, refused.stderr
    assert "does not work with --exact: the network draws random numbers with draw_1/random_normal/" in refused.stderr
    assert "keras.random.SeedGenerator in the layer's __init__" in refused.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_own_networks_are_trained_evaluated_and_refused_with_other_code(digits_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RANDOM.format(call="x + tf.random.normal((3,))", layers="Layer(),"))
    run = [f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path / 'run'}"]
    environment = {"PYTHONPATH": str(tmp_path)}
    done = fork_module("trainer.task", *run, "--model=mine:build", "--max-steps=4", **environment)
    assert done.returncode == 0, done.stderr
    # It works, but a resumed run would be another one.
    assert "the network draws random numbers with draw_1/random_normal/RandomStandardNormal" in done.stdout
    assert len(json.loads((tmp_path / "run" / "result.json").read_text())["identity"]["model_source"]) == 64
    report = f"--report={tmp_path / 'report.html'}"
    evaluated = fork_module("trainer.evaluate", *run, report, **environment)
    assert evaluated.returncode == 0, evaluated.stderr
    (tmp_path / "mine.py").write_text(MODEL.format(**GOOD) + "# changed\n")
    refused = fork_module("trainer.evaluate", *run, report, **environment)
    assert refused.returncode == 2
    assert "was trained with another version of 'mine:build'" in refused.stderr


RANDOM = """
import keras
import tensorflow as tf
from keras import layers

class Layer(keras.layers.Layer):
    def __init__(self):
        super().__init__(name="draw")
        self.seed_generator = keras.random.SeedGenerator(5)
        self.generator = tf.random.Generator.from_seed(5)

    def call(self, x):
        return {call}

@tf.function
def nested(x):
    return x + tf.random.uniform((3,))

def build(*, image_size, num_classes, weights):
    images = keras.Input((image_size, image_size, 3), dtype="uint8")
    hidden = layers.Rescaling(1 / 255)(images)
    for layer in ({layers}):
        hidden = layer(hidden)
    outputs = layers.Dense(num_classes, activation="softmax", dtype="float32")(layers.Flatten()(hidden))
    return keras.Model(images, outputs)
"""
KERAS_LAYERS = (
    "layers.Dropout(0.2), layers.SpatialDropout2D(0.2), layers.GaussianNoise(0.1), layers.RandomFlip(),"
    " layers.RandomRotation(0.1), layers.RandomContrast(0.1), Layer()"
)
SEEDED = "keras.random.normal((3,), seed=self.seed_generator)"
STATE, REPEATED = "whose state is in no checkpoint", "the same random numbers in every step with"


@pytest.mark.parametrize(
    ("number", "call", "expected"),
    [
        (1, f"x + {SEEDED}", ""),
        (2, f"tf.cond(x[0, 0, 0, 0] > 0, lambda: x + {SEEDED}, lambda: x)", ""),
        (
            3,
            (
                "(lambda s: tf.while_loop(lambda i, c, x: i < 3, lambda i, c, x: (i + 1, c + s, x +"
                " tf.random.stateless_normal((3,), c)), (0, tf.constant([1, 2]), x))[2])"
                "(tf.cast(self.seed_generator.next(), 'int32'))"
            ),
            "",
        ),
        (4, "x + tf.random.normal((3,))", f"random_normal/RandomStandardNormal, {STATE}"),
        (5, "x + tf.random.shuffle([1.0, 2.0, 3.0], seed=3)", f"RandomShuffle, {STATE}"),
        (6, "x + self.generator.normal((3,))", f"RngReadAndSkip, {STATE}"),
        (7, "tf.map_fn(nested, x)", f"random_uniform/RandomUniform, {STATE}"),
        (8, "x + keras.random.normal((3,))", f"{REPEATED} draw_1/stateless_random_normal"),
        (9, "x + keras.random.normal((3,), seed=7)", f"{REPEATED} draw_1/stateless_random_normal"),
        (10, f"tf.cond(x[0, 0, 0, 0] > 0, lambda: x + {SEEDED}, lambda: keras.random.dropout(x, 0.5))", REPEATED),
    ],
)
def test_draws_that_do_not_follow_from_the_step_are_found(write: Writer, number: int, call: str, expected: str) -> None:
    import tensorflow as tf

    from trainer.learner import random_numbers

    module = write(f"draws{number}", RANDOM.format(call=call, layers="Layer(),"))
    model = models.build(f"{module}:build", image_size=16, num_classes=3)
    found = random_numbers.remarks(model, tf.distribute.get_strategy())
    assert [expected in remark for remark in found] == [True] * bool(expected), found


@pytest.mark.slow
def test_random_layers_of_keras_are_not_reported_and_resume_exactly(
    write: Writer, training: "Examples", sampler: "Sampler"
) -> None:
    from exact_resume.checkpoints import checkpoints
    from tests.support.learners import NUM_STEPS, make_learner
    from trainer.checkpoints import variables
    from trainer.learner import random_numbers

    name = f"{write('lively', RANDOM.format(call=f'x + {SEEDED}', layers=KERAS_LAYERS))}:build"
    first, resumed = make_learner(model=name), make_learner(model=name)
    assert random_numbers.remarks(first.model, first.distribution_strategy) == []
    batches = first.batches(training, sampler, NUM_STEPS)
    first.train(batches, 2)
    for variable, value in zip(resumed.variables(), variables.values(first.variables()), strict=True):
        variable.assign(value)
    resumed.step = 2
    losses = [one.train(one.batches(training, sampler, NUM_STEPS), 2).losses.tolist() for one in (first, resumed)]
    assert losses[0] == losses[1]
    ends = [checkpoints.digest(variables.values(one.variables())) for one in (first, resumed)]
    assert ends[0] == ends[1]


SUBCLASSED = """
import keras
from keras import layers

class Own(keras.Model):
    def __init__(self, num_classes):
        super().__init__()
        self.normalization = layers.BatchNormalization()
        self.dropout = layers.Dropout(0.5)
        self.flatten = layers.Flatten()
        self.outputs_layer = layers.Dense(num_classes, activation="softmax", dtype="float32")

    def call(self, images, training=False):
        hidden = self.normalization(keras.ops.cast(images, "float32") / 255.0, training=training)
        return self.outputs_layer(self.flatten(self.dropout(hidden, training=training)))

class Eager(keras.Model):
    def call(self, images):
        return images.numpy()

def build(*, image_size, num_classes, weights):
    return Own(num_classes)

def build_sequential(*, image_size, num_classes, weights):
    return keras.Sequential([layers.Flatten(), layers.Dense(num_classes, activation="softmax", dtype="float32")])

def build_eager(*, image_size, num_classes, weights):
    return Eager()
"""


def test_subclassed_and_sequential_models_get_their_input(write: Writer) -> None:
    import numpy as np

    module = write("subclassed", SUBCLASSED)
    models.build(f"{module}:build_sequential", image_size=16, num_classes=3)
    model = models.build(f"{module}:build", image_size=16, num_classes=3)
    assert [variable.name for variable in model.trainable_variables] == ["gamma", "beta", "kernel", "bias"]
    images = np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), dtype=np.uint8)
    plain = [model(images).numpy() for _ in range(2)]
    trained = [model(images, training=True).numpy() for _ in range(2)]
    assert np.array_equal(*plain)
    assert not np.array_equal(*trained)
    with pytest.raises(UserError) as caught:
        models.build(f"{module}:build_eager", image_size=16, num_classes=3)
    assert "called with uint8 [B, 16, 16, 3], failed: AttributeError" in str(caught.value)
    assert "\n" not in str(caught.value)
