"""Which machines train together, and the distribution strategy that follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from trainer.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf


def refuse_unsupported(environment: Mapping[str, str]) -> None:
    """Refuse a cluster before TensorFlow is imported.

    Raises:
        UserError: TF_CONFIG is damaged, or names more than one task.
    """
    text = environment.get("TF_CONFIG", "").strip()
    if not text:
        return
    try:
        cluster = json.loads(text).get("cluster") or {}
        num_tasks = sum(len(addresses) for addresses in cluster.values())
    except (ValueError, AttributeError, TypeError) as error:
        raise UserError(
            f"TF_CONFIG is not what Vertex AI sets ({error}); expected JSON with a field cluster"
        ) from error
    if num_tasks > 1:
        raise UserError(
            f"TF_CONFIG names {num_tasks} machines ({', '.join(sorted(cluster))}); this version trains on one machine:"
            " set the replica count to 1"
        )


def distribution_strategy() -> tf.distribute.Strategy:
    """The distribution strategy for this machine: one device; GPUs that stay idle are said so."""
    import tensorflow as tf

    if (num_gpus := len(tf.config.list_physical_devices("GPU"))) > 1:
        print(f"note: {num_gpus} GPUs are visible and this version trains on one; an accelerator_count of 1 is enough")
    return tf.distribute.get_strategy()
