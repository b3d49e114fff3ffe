"""Softmax regression with NumPy alone: python numpy_softmax.py FOLDER, killed and run again at any moment.

Begin with `python -m exact_resume rehearse -- python numpy_softmax.py FOLDER`.
"""

import hashlib
import os
import sys

import numpy as np

import exact_resume

NUM_CLASSES, NUM_FEATURES = 5, 20
generator = np.random.default_rng(0)
centres = generator.normal(size=(NUM_CLASSES, NUM_FEATURES))
y = generator.integers(NUM_CLASSES, size=2000)
x = centres[y] + 2 * generator.normal(size=(2000, NUM_FEATURES))

weights, momentum = np.zeros((NUM_FEATURES, NUM_CLASSES)), np.zeros((NUM_FEATURES, NUM_CLASSES))
noise = np.random.default_rng(1)
sampler = exact_resume.Sampler(num_examples=len(x), global_batch_size=64, seed=0)
with exact_resume.run(
    sys.argv[1] if sys.argv[1:] else os.environ["AIP_CHECKPOINT_DIR"],
    steps=1000,
    state={"weights": weights, "momentum": momentum, "noise": noise},
    config={"learning_rate": 0.05},
    sampler=sampler,
    code=[__file__],
    save_every_steps=100,
) as run:
    for step in run:
        rows = sampler.shard(step, run)
        if path := os.environ.get("EXAMPLES_SEEN"):
            with open(path, "a") as file:
                print(step, *rows, file=file)
        # Noise on the inputs, as augmentation.
        inputs = x[rows] + 0.1 * noise.normal(size=(len(rows), NUM_FEATURES))
        logits = inputs @ weights
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances = odds / odds.sum(axis=1, keepdims=True)
        run.log(loss=-np.log(chances[np.arange(len(rows)), y[rows]]).mean())
        chances[np.arange(len(rows)), y[rows]] -= 1
        momentum *= 0.9
        momentum += inputs.T @ chances / len(rows)
        weights -= 0.05 * momentum
    run.result(metrics={"accuracy": float(((x @ weights).argmax(axis=1) == y).mean())})
print(hashlib.sha256(weights.tobytes()).hexdigest())
