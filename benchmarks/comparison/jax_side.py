"""A loop of JAX with Orbax, and with exact_resume: prints lines for `python -m benchmarks.comparison`."""

import itertools
import os
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_cpu_multi_thread_eigen=false")

import grain
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

import exact_resume
from benchmarks.comparison import faults
from benchmarks.comparison.faults import Notes, Tool

_SAMPLER = exact_resume.Sampler(num_examples=faults.NUM_EXAMPLES, global_batch_size=faults.BATCH_SIZE, seed=0)


def _initial() -> dict[str, Any]:
    draw = np.random.default_rng(0)
    shapes = {"first": (64, 32), "first_bias": (32,), "second": (32, 10), "second_bias": (10,)}
    params = {name: jnp.asarray(0.1 * draw.normal(size=shape), jnp.float32) for name, shape in shapes.items()}
    return {"params": params, "momentum": jax.tree.map(jnp.zeros_like, params), "key": jax.random.PRNGKey(0)}


@jax.jit  # type: ignore[untyped-decorator]
def _update(state: Any, inputs: Any, labels: Any) -> Any:
    key, own = jax.random.split(state["key"])

    def loss(params: Any) -> Any:
        hidden = jax.nn.relu(inputs @ params["first"] + params["first_bias"])
        kept = jax.random.bernoulli(own, 0.8, hidden.shape)
        logits = jnp.where(kept, hidden / 0.8, 0) @ params["second"] + params["second_bias"]
        return -jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels].mean()

    momentum = jax.tree.map(lambda old, new: 0.9 * old + new, state["momentum"], jax.grad(loss)(state["params"]))
    params = jax.tree.map(lambda old, change: old - 0.05 * change, state["params"], momentum)
    return {"params": params, "momentum": momentum, "key": key}


def _train_with_orbax(folder: Path, notes: Notes, *, has_grain: bool) -> None:
    """Save weights, momentum, generator and step; the data begin again, or have a state of their own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    # Orbax saves at a SIGTERM if this service is there.
    jax.distributed.initialize(f"127.0.0.1:{port}", 1, 0)
    images, labels = faults.digits()
    state, first, data = _initial(), 0, None
    rows_of: Iterable[Any] = map(_SAMPLER.indices, itertools.count())
    if has_grain:
        source = grain.MapDataset.source(np.arange(faults.NUM_EXAMPLES)).shuffle(seed=0).repeat(faults.EPOCHS)
        rows_of = data = iter(source.batch(faults.BATCH_SIZE).to_iter_dataset())
    options = ocp.CheckpointManagerOptions(save_interval_steps=faults.SAVE_EVERY, max_to_keep=3)
    with ocp.CheckpointManager(folder, options=options) as manager:
        if latest := manager.latest_step():
            restored = {"state": ocp.args.StandardRestore(state)}
            restored |= {"data": grain.checkpoint.CheckpointRestore(data)} if has_grain else {}
            state, first = manager.restore(latest, args=ocp.args.Composite(**restored))["state"], latest
        notes.begin(jax.tree.leaves(state["params"]))
        for step, rows in zip(range(first + 1, faults.NUM_STEPS + 1), rows_of, strict=False):
            state = _update(state, images[rows], labels[rows])
            notes.step(rows, jax.tree.leaves(state["params"]))
            saved = {"state": ocp.args.StandardSave(state)}
            saved |= {"data": grain.checkpoint.CheckpointSave(data)} if has_grain else {}
            manager.save(step, args=ocp.args.Composite(**saved))
            if manager.reached_preemption(step):
                manager.wait_until_finished()
                sys.exit(143)


def _train_with_exact_resume(folder: Path, notes: Notes) -> None:
    images, labels = faults.digits()
    held = {"state": _initial()}

    def load(leaves: list[Any]) -> None:
        held["state"] = jax.tree.unflatten(jax.tree.structure(held["state"]), map(jnp.asarray, leaves))

    saved = exact_resume.saved(
        held, save=lambda it: [np.asarray(leaf) for leaf in jax.tree.leaves(it["state"])], load=load
    )
    with exact_resume.run(
        folder,
        steps=faults.NUM_STEPS,
        state={"training": saved},
        sampler=_SAMPLER,
        code=[__file__],
        save_every_steps=faults.SAVE_EVERY,
    ) as run:
        notes.begin(jax.tree.leaves(held["state"]["params"]))
        for step in run:
            rows = _SAMPLER.shard(step, run)
            held["state"] = _update(held["state"], images[rows], labels[rows])
            notes.step(rows, jax.tree.leaves(held["state"]["params"]))


def _of_orbax(name: str, *, has_grain: bool) -> Tool:
    return Tool(
        name=name,
        train=lambda folder, notes: _train_with_orbax(folder, notes, has_grain=has_grain),
        newest=lambda folder: max(
            (path for path in folder.iterdir() if path.name.isdigit()), key=lambda it: int(it.name)
        ),
    )


if __name__ == "__main__":
    sys.exit(
        faults.measure(
            [
                _of_orbax("Orbax", has_grain=False),
                _of_orbax("Orbax and grain", has_grain=True),
                Tool(
                    name="exact_resume.run",
                    train=_train_with_exact_resume,
                    newest=lambda folder: max(folder.glob("step-*")),
                ),
            ]
        )
    )
