"""Train a flax nnx model with Dropout, save its state with Orbax, and continue in another model."""

import json
import tempfile
from pathlib import Path

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as orbax
from flax import nnx
from sklearn.datasets import load_digits

examples, labels = load_digits(return_X_y=True)
examples, labels = jnp.asarray(examples / 16), jnp.asarray(labels)


class Net(nnx.Module):
    """A small network with dropout and batch normalisation."""

    def __init__(self, rngs):
        self.first, self.norm = nnx.Linear(64, 16, rngs=rngs), nnx.BatchNorm(16, rngs=rngs)
        self.dropout, self.last = nnx.Dropout(0.5, rngs=rngs), nnx.Linear(16, 10, rngs=rngs)

    def __call__(self, batch):
        """Return logits."""
        return self.last(self.dropout(nnx.relu(self.norm(self.first(batch)))))


def build(seed=0):
    """Return model and optimizer."""
    model = Net(nnx.Rngs(seed))
    return model, nnx.Optimizer(model, optax.adam(0.01), wrt=nnx.Param)


@nnx.jit
def step(model, optimizer):
    """Train on all examples."""

    def loss(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(examples), labels).mean()

    optimizer.update(model, nnx.grad(loss)(model))


def train(pair, number):
    """Train some steps; return model and optimizer."""
    for _ in range(number):
        step(*pair)
    return pair


def weights(pair):
    """Return the last layer."""
    return np.asarray(pair[0].last.kernel[...])


whole, first, cases = train(build(), 10), train(build(), 5), {}
with tempfile.TemporaryDirectory() as folder, orbax.StandardCheckpointer() as checkpointer:
    for name, filters in {
        "the whole state of model and optimizer": (...,),
        "the parameters of the model and the optimizer": (nnx.Param,),
        "everything but the random state": (nnx.Not(nnx.RngState),),
    }.items():
        path = Path(folder) / name.replace(" ", "-")
        parts = build()
        model, optimizer = nnx.state(first[0], *filters), nnx.state(first[1])
        target = {"model": nnx.state(parts[0], *filters), "optimizer": nnx.state(parts[1])}
        try:
            checkpointer.save(path, {"model": model, "optimizer": optimizer})
            checkpointer.wait_until_finished()
            restored = checkpointer.restore(path, target)
        except Exception as error:
            cases[name] = f"refused: {type(error).__name__}"
            continue
        nnx.update(parts[0], restored["model"])
        nnx.update(parts[1], restored["optimizer"])
        cases[name] = float(np.abs(weights(whole) - weights(train(parts, 5))).max())
versions = {"flax": flax.__version__, "orbax": orbax.__version__, "jax": jax.__version__}
continued = "`nnx.state` in `StandardCheckpointer`"
print(json.dumps({"library": "flax nnx", "versions": versions, "continued": continued, "cases": cases}))
