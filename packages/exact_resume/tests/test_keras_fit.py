"""`model.fit` of Keras: stopped or failed at any step, it ends with the same bits and logs as without interruption."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exact_resume
from exact_resume import InputError, Sampler, Stopped, keras_fit
from exact_resume.checkpoints import checkpoints, result_file

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

# Keras 3.15 converts its own variables in a way that NumPy 2 is about to drop.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")]

EPOCHS, STEPS_PER_EPOCH = 6, 6
SAMPLER = Sampler(num_examples=100, global_batch_size=16, seed=3)
generator = np.random.default_rng(0)
X = generator.normal(size=(100, 8)).astype("float32")
Y = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] > 1)
WEIGHTS = generator.random(100).astype("float32")
VALIDATION = (X[:30], Y[:30])
SOAK = (pytest.mark.soak,)
Outcome = tuple[bytes, dict[str, list[float]]]


def make_model(optimizer: Any = None, layers: Collection[Any] = (), **options: Any) -> Any:
    keras.utils.set_random_seed(1)
    found = [
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dropout(0.5),
        *(layer() for layer in layers),
        keras.layers.BatchNormalization(),
        keras.layers.Dense(3),
    ]
    model = keras.Sequential([keras.Input([8]), *found])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer() if optimizer else keras.optimizers.Adam(0.05), loss, metrics=["accuracy"], **options)
    return model


def make_callbacks() -> list[Any]:
    return [
        keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True, min_delta=0.05),
        keras.callbacks.ReduceLROnPlateau(patience=1, factor=0.5, min_delta=0.05),
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
    ]


class Disturbance(keras.callbacks.Callback):  # type: ignore[misc]
    """Sends SIGTERM, or raises an exception, in the steps that are left in a set."""

    def __init__(self, steps: Collection[int], hook: str, act: Callable[[], object]) -> None:
        super().__init__()
        self.left, self.act = set(steps), act
        setattr(self, hook, self.disturb)

    def disturb(self, batch: int, logs: Any = None) -> None:
        if self.run.step in self.left:
            self.left.remove(self.run.step)
            self.act()


def stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def fail() -> None:
    raise ZeroDivisionError


def fit(
    folder: Path,
    steps: Collection[int] = (),
    *,
    hook: str = "on_train_batch_end",
    act: Callable[[], object] = stop,
    model: Callable[[], Any] = make_model,
    callbacks: Callable[[], list[Any]] = make_callbacks,
    data: Any = (X, Y),
    fit_options: dict[str, Any] | None = None,
    **options: Any,
) -> Outcome:
    """Train, disturbed in these steps and then to the end, as new processes would."""
    disturbance = Disturbance(steps, hook, act)
    for _ in range(len(steps) + 1):
        trained, kept = model(), [*callbacks(), disturbance]
        try:
            with keras_fit.run(
                folder, model=trained, data=data, sampler=SAMPLER, epochs=EPOCHS, callbacks=kept,
                stateless=[disturbance], **options,
            ) as (run, arguments):  # fmt: skip
                disturbance.run = run
                history = trained.fit(**arguments, validation_data=VALIDATION, verbose=0, **(fit_options or {}))
        except (Stopped, ZeroDivisionError):
            continue
        assert not disturbance.left
        return outcome(trained, history)
    raise AssertionError


def outcome(model: Any, history: Any) -> Outcome:
    return b"".join(each.tobytes() for each in model.get_weights()), history.history


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return fit(tmp_path_factory.mktemp("undisturbed") / "run")


def test_without_interruption_it_is_a_plain_fit(undisturbed: Outcome) -> None:
    def batches() -> Iterator[Any]:
        for step in itertools.count():
            rows = SAMPLER.indices(step)
            yield X[rows], Y[rows]

    model = make_model()
    history = model.fit(
        batches(), epochs=EPOCHS, steps_per_epoch=STEPS_PER_EPOCH, callbacks=make_callbacks(),
        validation_data=VALIDATION, verbose=0, shuffle=False,
    )  # fmt: skip
    assert outcome(model, history) == undisturbed
    rates = history.history["learning_rate"]
    # Both callbacks had something to do.
    assert len(rates) < EPOCHS
    assert any(after / before < 0.6 for before, after in itertools.pairwise(rates))


@pytest.mark.parametrize(
    "steps", [{8, 9}, *(pytest.param(each, marks=SOAK) for each in ({0}, {4}, {5}, {6}, {13, 19}))]
)
def test_stopped_at_any_step_it_ends_the_same(tmp_path: Path, undisturbed: Outcome, steps: set[int]) -> None:
    assert fit(tmp_path / "run", steps) == undisturbed
    last = STEPS_PER_EPOCH * len(undisturbed[1]["loss"])
    assert checkpoints.steps(str(tmp_path / "run"))[0] == last


@pytest.mark.parametrize("step", [7, pytest.param(11, marks=SOAK)])
def test_what_was_not_saved_is_repeated(tmp_path: Path, undisturbed: Outcome, step: int) -> None:
    assert fit(tmp_path / "run", {step}, act=fail, save_every_steps=4, save_every_seconds=0) == undisturbed


@pytest.mark.soak
@pytest.mark.parametrize(("act", "saved"), [(stop, 12), pytest.param(fail, 8, marks=SOAK)])
def test_interrupted_in_the_validation(
    tmp_path: Path, undisturbed: Outcome, act: Callable[[], object], saved: int
) -> None:
    """A stop waits for the end of the epoch; after a failure, the steps since the last save are repeated."""
    found = []
    options: dict[str, Any] = {"save_every_steps": 4, "save_every_seconds": 0, "hook": "on_test_batch_end"}

    def note() -> None:
        act()

    def model() -> Any:
        found.extend(checkpoints.steps(str(tmp_path / "run"))[:1])
        return make_model()

    assert fit(tmp_path / "run", {11}, act=note, model=model, **options) == undisturbed
    assert found == [saved]


@pytest.mark.soak
def test_early_stopping_finishes_the_run(tmp_path: Path, undisturbed: Outcome) -> None:
    assert fit(tmp_path / "run") == undisturbed
    result = result_file.read_result(str(tmp_path / "run"))
    assert result
    history = undisturbed[1]
    num_epochs = len(history["loss"])
    assert result["stop_reason"] == f"a callback stopped the training in epoch {num_epochs}"
    assert result["final_step"] == num_epochs * STEPS_PER_EPOCH
    assert result["metrics"] == {name: values[-1] for name, values in history.items()}
    # A finished run trains no step, and gives the same model.
    assert fit(tmp_path / "run") == undisturbed
    assert result_file.read_result(str(tmp_path / "run")) == result


class UnseededNoise(keras.layers.Layer):  # type: ignore[misc]
    """Draws from the global generators of Keras and TensorFlow."""

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training:
            return inputs
        noise = keras.random.normal(tf.shape(inputs)) + tf.random.get_global_generator().normal(tf.shape(inputs))
        return inputs + 0.1 * noise


def decayed() -> Any:
    return keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.5, 3, 0.8), momentum=0.9)


def averaged() -> Any:
    return keras.optimizers.AdamW(0.05, use_ema=True, gradient_accumulation_steps=4)


def scaled() -> Any:
    return keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.05), dynamic_growth_steps=5)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"optimizer": decayed}, marks=SOAK, id="schedule"),
        pytest.param({"optimizer": averaged}, id="accumulation"),
        pytest.param({"optimizer": scaled}, marks=SOAK, id="loss scale"),
        pytest.param({"layers": [UnseededNoise]}, marks=SOAK, id="global generators"),
    ],
)
def test_all_state_comes_back(tmp_path: Path, options: dict[str, Any]) -> None:
    def model() -> Any:
        tf.random.get_global_generator().reset_from_seed(5)
        return make_model(**options)

    def none() -> list[Any]:
        return []

    whole = fit(tmp_path / "whole", model=model, callbacks=none)
    assert fit(tmp_path / "run", {8}, model=model, callbacks=none) == whole


class Rows:
    """Rows of an array that the program reads itself."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, rows: Any) -> Any:
        return X[rows]


@pytest.mark.soak
def test_weights_of_examples_and_classes(tmp_path: Path, undisturbed: Outcome) -> None:
    weighted = fit(tmp_path / "whole", data=(X, Y, WEIGHTS))
    assert weighted != undisturbed
    assert fit(tmp_path / "run", {8}, data=(X, Y, WEIGHTS)) == weighted
    classes: dict[str, Any] = {"fit_options": {"class_weight": {0: 1.0, 1: 2.0, 2: 3.0}}}
    assert fit(tmp_path / "classes", **classes) == fit(tmp_path / "again", {8}, **classes) != undisturbed


@pytest.mark.soak
def test_data_that_the_program_reads(tmp_path: Path, undisturbed: Outcome) -> None:
    assert fit(tmp_path / "run", {8}, data=(Rows(), Y)) == undisturbed


class Counter(keras.callbacks.Callback):  # type: ignore[misc]
    """Counts steps, and stops the training after some."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def get_state(self) -> Any:
        return {"count": self.count}

    def set_state(self, state: Any) -> None:
        self.count = state["count"]

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.count += 1
        self.model.stop_training = self.count == 15


@pytest.mark.soak
def test_a_callback_of_the_program_keeps_its_state(tmp_path: Path) -> None:
    """It stops in the middle of an epoch, whose validation follows."""
    whole = fit(tmp_path / "whole", callbacks=lambda: [Counter()])
    assert len(whole[1]["val_loss"]) == 3
    assert fit(tmp_path / "run", {4, 13}, callbacks=lambda: [Counter()]) == whole
    assert checkpoints.steps(str(tmp_path / "run"))[0] == 15


@pytest.mark.soak
def test_the_best_model_is_known_after_a_stop(tmp_path: Path) -> None:
    def files(folder: Path) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in folder.iterdir()}

    def callbacks(folder: Path) -> Callable[[], list[Any]]:
        path = str(folder / "{epoch}.weights.h5")
        return lambda: [keras.callbacks.ModelCheckpoint(path, "val_accuracy", 0, True, True)]

    fit(tmp_path / "whole", callbacks=callbacks(tmp_path / "a"))
    fit(tmp_path / "run", {8, 20}, callbacks=callbacks(tmp_path / "b"))
    assert files(tmp_path / "a").keys() == files(tmp_path / "b").keys()
    assert 0 < len(files(tmp_path / "a")) < EPOCHS


class OwnEarlyStopping(keras.callbacks.EarlyStopping):  # type: ignore[misc]
    pass


def arguments(folder: Path, **changes: Any) -> dict[str, Any]:
    given = {"directory": folder, "model": make_model(), "data": (X, Y), "sampler": SAMPLER, "epochs": 2}
    return given | {name: change() for name, change in changes.items()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": lambda: None}, "model is a NoneType; expected a keras.Model"),
        ({"model": lambda: make_model(steps_per_execution=2)}, "steps_per_execution.*because a run saves after each"),
        ({"sampler": lambda: Sampler(num_examples=100, global_batch_size=4, num_micro_batches=2)}, "num_micro_batches"),
        ({"data": lambda: (X, Y[:50])}, "data has a ndarray; expected a tuple of arrays with the sampler's 100 rows"),
        (
            {"callbacks": lambda: [OwnEarlyStopping()]},
            "callback OwnEarlyStopping has attributes.* list it in stateless",
        ),
        ({"callbacks": lambda: [keras.callbacks.CSVLogger("a.csv")]}, "callback CSVLogger writes a file"),
        ({"callbacks": lambda: [keras.callbacks.LambdaCallback(on_epoch_end=print)]}, "callback LambdaCallback"),
        ({"callbacks": lambda: [keras.callbacks.BackupAndRestore("backup")]}, "callback BackupAndRestore"),
        ({"epochs": lambda: 0}, "steps is 0"),
    ],
)
def test_what_cannot_be_resumed_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message), keras_fit.run(**arguments(tmp_path / "run", **changes)):
        pass
    assert not (tmp_path / "run").exists()


def test_other_callbacks_are_another_run(tmp_path: Path) -> None:
    fit(tmp_path / "run")
    with (
        pytest.raises(InputError, match=r"config.callbacks.0 is 'EarlyStopping' there and 'History' here"),
        keras_fit.run(**arguments(tmp_path / "run", epochs=lambda: EPOCHS)),
    ):
        pass


def test_fit_with_other_arguments_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fit is in epoch 1, the run is not; call model\.fit once"):
        with keras_fit.run(**(given := arguments(tmp_path / "run"))) as (_, found):
            given["model"].fit(**found | {"initial_epoch": 1}, verbose=0)
    assert checkpoints.steps(str(tmp_path / "run")) == []


def test_without_fit_the_run_is_not_finished(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as left, keras_fit.run(**arguments(tmp_path / "run")):
        pass
    assert left.value.code == 1
    assert not (tmp_path / "run" / "result.json").exists()


def test_a_result_of_the_program_is_kept(tmp_path: Path) -> None:
    with keras_fit.run(**(given := arguments(tmp_path / "run"))) as (run, found):
        given["model"].fit(**found, verbose=0)
        given["model"].save_weights(tmp_path / "model.weights.h5")
        run.result(model=tmp_path / "model.weights.h5", metrics={"score": 0.5})
    result = result_file.read_result(str(tmp_path / "run"))
    assert result
    assert (result["metrics"], result["final_step"]) == ({"score": 0.5}, 12)


REPLICAS = """
import os, sys
import keras, tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
several = tf.distribute.MultiWorkerMirroredStrategy()
sys.path.insert(0, {folder!r})
import test_keras_fit as tests
from pathlib import Path
folder = Path(sys.argv[1])
with several.scope():
    model = tests.make_model()
try:
    with tests.keras_fit.run(**tests.arguments(folder / "several", model=lambda: model)):
        pass
except tests.InputError as error:
    print(error)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
def make_model():
    with strategy.scope():
        return tests.make_model()
whole = tests.fit(folder / "whole", model=make_model)
assert tests.fit(folder / "run", {{3, 14}}, model=make_model) == whole
averages = strategy.experimental_local_results(make_model().non_trainable_variables[1].value)
print(len(averages), "replicas", flush=True)
# With TensorFlow's collective operations, an orderly exit may hang.
os._exit(0)
"""


@pytest.mark.soak
def test_replicas_keep_what_differs_between_them(tmp_path: Path) -> None:
    """Averages of batch normalisation and sums of metrics do."""
    program = REPLICAS.format(folder=str(Path(__file__).parent))
    words = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    refusal, last = done.stdout.splitlines()
    assert "the model has a MultiWorkerMirroredStrategy, whose workers" in refusal
    assert last == "2 replicas"


def test_the_import_needs_no_keras() -> None:
    program = "import sys, exact_resume.keras_fit; print({'keras', 'tensorflow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
    assert exact_resume.keras_fit is keras_fit
