"""Keras' `model.fit` that resumes exactly, in the middle of an epoch.

    with exact_resume.keras_fit.run("checkpoints/", model=model, data=(x, y), sampler=sampler, epochs=10,
                                    callbacks=[EarlyStopping(patience=2)], code=[__file__]) as (run, arguments):
        model.fit(**arguments, validation_data=(x_test, y_test))

`data` may also be a tf.data.Dataset, without a sampler. `with` restores. The arguments are the batches from the next
step on, the epoch of this step, and the callbacks, of which the last one counts steps and saves between two batches.
The last step of an epoch includes the validation and what the callbacks do at the end of the epoch. Keras is not
imported here: a program with a model has imported it.
"""

import contextlib
import itertools
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import exact_resume.program as program
import exact_resume.state as states
from exact_resume.errors import InputError
from exact_resume.sampler import Sampler
from exact_resume.tf_data import DatasetBatches

_ATTRIBUTES = {
    "EarlyStopping": "wait stopped_epoch best best_weights best_epoch",
    "History": "epoch history",
    "LearningRateScheduler": "",
    "ModelCheckpoint": "best _batches_seen_since_last_saving _last_batch_seen",
    "ReduceLROnPlateau": "wait cooldown_counter best",
    "SwapEMAWeights": "_ema_weights_in_model",
    "TensorBoard": "_global_train_batch _global_test_batch",
    "TerminateOnNaN": "",
}
"""Callback of Keras 3.15 -> its attributes that training changes."""
_END_OF_EPOCH = "the resumed epoch has ended"
"""Value of `model.stop_training` that ends an epoch, not the training."""


@contextlib.contextmanager
def run(
    directory: str | os.PathLike[str],
    *,
    model: Any,
    data: Any,
    sampler: Sampler | None = None,
    steps_per_epoch: int | None = None,
    epochs: int,
    callbacks: Sequence[Any] = (),
    stateless: Sequence[Any] = (),
    config: Mapping[str, Any] | None = None,
    **options: Any,
) -> Iterator[tuple[program.Run, dict[str, Any]]]:
    """Restore a model, and yield the run and the arguments of `model.fit`; used with `with`.

    The run is finished when `with` ends, with the logs of the last epoch, unless `run.result` was called.

    Args:
        directory: Folder for checkpoints, event log and result.json, local or gs://.
        model: Compiled model of Keras, on TensorFlow.
        data: Tuple of inputs, targets and, if any, sample weights: arrays [N, ...], or dicts of them. An object of
            the program's own has a length and returns the batch of int64 [G] rows that it is indexed with. Or a
            tf.data.Dataset of batches, which is repeated, without a sampler.
        sampler: The order of the examples; not for a tf.data.Dataset.
        steps_per_epoch: Number of batches per epoch of a tf.data.Dataset; None: its length.
        epochs: Number of epochs of the whole run.
        callbacks: The callbacks of `fit`: Keras' own, or with `get_state` and `set_state`, or without attributes.
        stateless: Those of the callbacks that have attributes, but none that later steps need.
        config: Whatever else decides what the run computes.
        options: As for `exact_resume.run`: code, save_every_steps and others.

    Raises:
        InputError: An argument is wrong, the model cannot be resumed, or the folder contains another run.
    """
    keras, tf = sys.modules.get("keras"), sys.modules.get("tensorflow")
    if not (keras and tf and isinstance(model, keras.Model) and keras.backend.backend() == "tensorflow"):
        raise InputError(f"model is a {type(model).__name__}; expected a keras.Model with KERAS_BACKEND=tensorflow")
    if model.steps_per_execution != 1 or (sampler and sampler.num_micro_batches != 1):
        raise InputError(
            "model.compile has steps_per_execution, or the sampler num_micro_batches; expected 1 and 1, because a run"
            " saves after each batch"
        )
    if isinstance(model.distribute_strategy, tf.distribute.MultiWorkerMirroredStrategy):
        raise InputError(
            "the model has a MultiWorkerMirroredStrategy, whose workers would have to leave at the same step; use"
            " MirroredStrategy, on one machine"
        )

    dataset = None
    if isinstance(data, tf.data.Dataset):
        per_epoch = _steps_per_epoch(data, sampler, steps_per_epoch, tf)
        dataset = DatasetBatches(data, tf)
        batch: Callable[[int], Any] = dataset.batch
        specification = data.element_spec
    else:
        if not sampler or steps_per_epoch is not None:
            raise InputError("data is not a tf.data.Dataset; expected a sampler, and no steps_per_epoch")
        per_epoch, batch = sampler.steps_per_epoch, _indexed(data, sampler, keras)
        specification = keras.tree.map_structure(tf.type_spec_from_value, batch(0))
    objects = _variables(model, batch(0), tf)
    history = keras.callbacks.History()
    kept = [*callbacks, history]
    for number, callback in enumerate(kept):
        if callback not in stateless:
            objects |= _state_of(callback, f"callbacks.{number}")
    with (
        program.run(
            directory,
            steps=epochs * per_epoch,
            state=objects | ({"data": dataset} if dataset else {}),
            config={
                **(config or {}),
                "callbacks": [type(each).__name__ for each in kept],
                **({"first_batch_sha256": dataset.digest, "steps_per_epoch": per_epoch} if dataset else {}),
            },
            sampler=sampler,
            **options,
        ) as inner,
        contextlib.ExitStack() as evaluation,
    ):
        if inner.num_workers > 1:
            raise InputError("TF_CONFIG or WORLD_SIZE has several workers; model.fit trains with one, so unset them")
        first_step = inner.step
        first_epoch, num_done = divmod(first_step, per_epoch)
        state = states.State(objects)
        restored, generators = state.take(), states.generators()
        is_left = next(inner, None) is not None

        def restore(logs: Any = None) -> None:
            if first_step:
                state.put(*restored)
                states.set_generators(generators)

        def begin_epoch(epoch: int, logs: Any) -> None:
            if epoch != inner.step // per_epoch:
                raise InputError(f"fit is in epoch {epoch}, the run is not; call model.fit once, with all arguments")
            # The other callbacks may have changed the learning rate a second time, and fit has reset the metrics.
            if epoch == first_epoch and num_done:
                restore()

        def end_batch(batch: int, logs: Any) -> None:
            inner.log(**_floats(logs))
            if dataset:
                dataset.end_step(inner.step)
            if not model.stop_training:
                if (inner.step + 1) % per_epoch:
                    next(inner)
                elif inner.step // per_epoch == first_epoch and num_done:
                    # Keras counts the batches of each epoch from 0 on, and would read beyond the end of this one.
                    model.stop_training = _END_OF_EPOCH

        def end_epoch(epoch: int, logs: Any) -> None:
            nonlocal is_left
            if model.stop_training == _END_OF_EPOCH:
                model.stop_training = False
            if model.stop_training:
                inner.finish(f"a callback stopped the training in epoch {epoch + 1}")
            is_left = next(inner, None) is not None

        last = keras.callbacks.LambdaCallback(
            # The other callbacks have reset themselves.
            on_train_begin=restore,
            on_epoch_begin=begin_epoch,
            on_train_batch_end=end_batch,
            on_test_begin=lambda logs: evaluation.enter_context(inner.evaluation()),
            on_test_end=lambda logs: evaluation.close(),
            on_epoch_end=end_epoch,
        )
        # Endless, because Keras reads ahead; a strategy reads the first batch twice.
        batches = tf.data.Dataset.from_generator(
            lambda: map(batch, itertools.count(first_step)),
            output_signature=specification,
        )
        yield (
            inner,
            {
                "x": batches.prefetch(tf.data.AUTOTUNE),
                "epochs": epochs,
                "initial_epoch": first_epoch if is_left else epochs,
                "steps_per_epoch": per_epoch,
                "callbacks": [*kept, last],
                "shuffle": False,
            },
        )
        if not is_left:
            inner.result(metrics=_floats({name: values[-1] for name, values in history.history.items()}))


def _indexed(data: Any, sampler: Sampler, keras: Any) -> Callable[[int], Any]:
    """Return a function from a step to its rows of the data."""

    def batch(step: int) -> Any:
        rows = sampler.indices(step)

        def taken(each: Any) -> Any:
            if not hasattr(each, "__getitem__") or len(each) != sampler.num_examples:
                raise InputError(
                    f"data has a {type(each).__name__}; expected a tuple of arrays with the sampler's"
                    f" {sampler.num_examples} rows, or a tf.data.Dataset"
                )
            return each[rows]

        return keras.tree.map_structure(taken, data)

    return batch


def _steps_per_epoch(data: Any, sampler: Any, given: Any, tf: Any) -> int:
    """Return the number of batches per epoch of a dataset, and refuse what cannot be saved."""
    if sampler:
        raise InputError("data is a tf.data.Dataset, which has its own order; leave sampler out")
    element = data.element_spec
    kinds = {type(each).__name__ for each in tf.nest.flatten(element)} - {"TensorSpec"}
    if not isinstance(element, tuple) or kinds:
        found = f"elements with {', '.join(sorted(kinds))}" if kinds else f"elements of type {type(element).__name__}"
        raise InputError(f"data is a tf.data.Dataset of {found}; expected tuples of inputs and targets, all tensors")
    length = int(data.cardinality()) if given is None else given
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise InputError(
            f"steps_per_epoch is {given!r}, and the tf.data.Dataset has no known length; expected the number of batches"
            " per epoch"
        )
    return length


def _floats(logs: Any) -> dict[str, float]:
    return {name: value for name, value in logs.items() if isinstance(value, float)}


def _variables(model: Any, batch: Any, tf: Any) -> dict[str, Any]:
    """Return all variables of a training, including those that Keras makes with the first batch."""
    model.test_on_batch(*batch)
    strategy, optimizer = model.distribute_strategy, model.optimizer
    with strategy.scope():
        if not optimizer.built:
            optimizer.build(model.trainable_variables)
        # Private: the source of random numbers for functions of keras.random without a seed.
        seeds = sys.modules["keras.src.random.seed_generator"].global_seed_generator()
    sums = [each for each in optimizer.variables if "gradient_accumulator" in each.name]
    # Averages of batch normalisation, and sums, differ between replicas.
    divided = [*model.non_trainable_variables, *model.metrics_variables, seeds.state, *sums]
    replicas = [each for variable in divided for each in strategy.experimental_local_results(variable.value)]
    variables = [*model.trainable_variables, *replicas, tf.random.get_global_generator().state]
    return {"model": types.SimpleNamespace(variables=variables), "optimizer": optimizer}


def _state_of(callback: Any, path: str) -> dict[str, Any]:
    """Return the state of a callback by its path; nothing if it has none."""
    kind, content = type(callback), vars(callback)
    if content.keys() <= {"params", "_model"}:
        return {}
    if kind.__module__.startswith("keras.") and kind.__name__ in _ATTRIBUTES:
        names = _ATTRIBUTES[kind.__name__].split()
        return {
            path: states.saved(
                callback, save=lambda _: {each: content.get(each) for each in names}, load=content.update
            )
        }
    if kind.__module__.startswith("keras.") and kind.__name__ == "CSVLogger":
        raise InputError(
            "callback CSVLogger writes a file that is not part of the checkpoints, so after a resume it would lack rows"
            " or have some twice; leave it out: the event log has the same numbers, and History those of each epoch"
        )
    if not hasattr(callback, "get_state") and not hasattr(callback, "state_dict"):
        raise InputError(
            f"callback {kind.__name__} has attributes that later steps may need; give it get_state and set_state, or"
            " list it in stateless, too"
        )
    return {path: callback}
