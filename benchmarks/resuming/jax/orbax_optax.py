"""Save optax' state with Orbax, and restore it with a target tree and without."""

import json
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as orbax
from sklearn.datasets import load_digits

examples, labels = load_digits(return_X_y=True)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(0.01, 100)))


def start(seed):
    """Return the state of a new training."""
    key = jax.random.key(seed)
    weights = jax.random.normal(key, [64, 10]) * 0.01
    return {"weights": weights, "optimizer": optimizer.init(weights), "key": key}


@jax.jit
def step(state):
    """Train on examples that the key of the state chooses."""
    key, now = jax.random.split(state["key"])
    rows = jax.random.choice(now, len(labels), [64])

    def loss(weights):
        logits = jnp.asarray(examples)[rows] / 16 @ weights
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.asarray(labels)[rows]).mean()

    updates, new = optimizer.update(jax.grad(loss)(state["weights"]), state["optimizer"])
    return {"weights": optax.apply_updates(state["weights"], updates), "optimizer": new, "key": key}


def steps(state, number):
    """Train some steps."""
    for _ in range(number):
        state = step(state)
    return state


whole, first = steps(start(0), 20), steps(start(0), 10)
cases = {}
with tempfile.TemporaryDirectory() as folder, orbax.StandardCheckpointer() as checkpointer:
    checkpointer.save(Path(folder) / "state", first)
    checkpointer.wait_until_finished()
    parts = steps(checkpointer.restore(Path(folder) / "state", start(1)), 10)
    cases["with a target tree"] = float(np.abs(whole["weights"] - parts["weights"]).max())
    bare = checkpointer.restore(Path(folder) / "state")
    kinds = [
        type(each).__name__
        for each in jax.tree.leaves(bare["optimizer"], is_leaf=lambda it: it is not bare["optimizer"])
    ]
    try:
        steps(bare, 1)
        cases["without a target"] = 0
    except Exception as error:
        cases["without a target"] = f"NamedTuples become {kinds[-1]}s, then {type(error).__name__}"
    for name, value in {
        "an int beside it": 3,
        "a NumPy array": np.arange(3),
        "np.int64(3) with the same tree": np.int64(3),
        "np.uint32(3) with the same tree": np.uint32(3),
        "np.float32(3) with the same tree": np.float32(3),
    }.items():
        path = Path(folder) / name.replace(" ", "-")
        checkpointer.save(path, {"value": value})
        checkpointer.wait_until_finished()
        try:
            restored = checkpointer.restore(path, {"value": value})["value"]
            cases[name] = 0 if np.array_equal(restored, value) else f"becomes {restored!r}"
        except Exception as error:
            cases[name] = f"saved, then refused: {type(error).__name__}"
versions = {"orbax": orbax.__version__, "optax": optax.__version__, "jax": jax.__version__}
continued = "`StandardCheckpointer`"
print(json.dumps({"library": "Orbax and optax", "versions": versions, "continued": continued, "cases": cases}))
