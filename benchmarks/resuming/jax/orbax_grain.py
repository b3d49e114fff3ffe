"""Save a Grain iterator beside a JAX state in Orbax' CheckpointManager, and restore both in the middle of an epoch."""

import importlib.metadata
import json
import tempfile

import grain
import grain.checkpoint
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as orbax


def batches(size=4, seed=0):
    """Return shuffled, repeated batches with a random number for each example."""

    class Noise(grain.transforms.RandomMap):
        """Adds a random number of Grain's generator to each example."""

        def random_map(self, element, rng):
            """Return example and number."""
            return np.array([element, rng.random()])

    data = grain.MapDataset.range(40).seed(seed).shuffle().repeat(3).random_map(Noise()).batch(size)
    return iter(data.to_iter_dataset())


def step(state, batch):
    """Fold the batch into the state."""
    return jnp.tanh(state * 0.9 + jnp.asarray(batch).sum() / 100)


state, iterator, cases = jnp.zeros(3), batches(), {}
with tempfile.TemporaryDirectory() as folder, orbax.CheckpointManager(folder) as manager:
    for _ in range(7):
        state = step(state, next(iterator))
    manager.save(
        7,
        args=orbax.args.Composite(
            state=orbax.args.StandardSave({"sums": state}), data=grain.checkpoint.CheckpointSave(iterator)
        ),
    )
    manager.wait_until_finished()
    rest = list(iterator)
    for batch in rest:
        state = step(state, batch)
    for name, options in {
        "the same pipeline": {},
        "another batch size": {"size": 8},
        "another seed": {"seed": 1},
    }.items():
        again = batches(**options)
        try:
            restored = manager.restore(
                7,
                args=orbax.args.Composite(
                    state=orbax.args.StandardRestore({"sums": jnp.zeros(3)}),
                    data=grain.checkpoint.CheckpointRestore(again),
                ),
            )
        except Exception as error:
            cases[name] = f"refused: {type(error).__name__}"
            continue
        later, parts = list(restored["data"]), restored["state"]["sums"]
        for batch in later:
            parts = step(parts, batch)
        gap = float(jnp.abs(parts - state).max())
        cases[name] = gap if not options else "accepted silently"
versions = {
    "orbax": orbax.__version__,
    "grain": importlib.metadata.version("grain"),
    "jax": jax.__version__,
}
continued = "`CheckpointManager` with `grain.checkpoint`"
print(json.dumps({"library": "Orbax and Grain", "versions": versions, "continued": continued, "cases": cases}))
