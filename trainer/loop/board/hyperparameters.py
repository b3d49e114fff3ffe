"""The hyperparameters of a run, for TensorBoard's table of runs."""

import time
from collections.abc import Mapping
from typing import Any

from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import api as hparams

from trainer.models.metrics import ACCURACY


def summary(identity: Mapping[str, Any], run_id: str, *, exact: bool) -> Summary:
    """Return what TensorBoard's table of hyperparameters shows of a run.

    Args:
        identity: Everything that decides what the run computes, from `trainer.checkpoints.identity.identity`.
        run_id: Its id, which all attempts share.
        exact: Whether the weights are reproduced bit by bit.
    """
    shown = {**identity, "exact": exact}
    fields = [hparams.HParam(name) for name in shown]
    names = dict.fromkeys((ACCURACY, identity.get("metric", ACCURACY)))
    metrics = [hparams.Metric(name, display_name=f"validation {name}") for name in names]
    config = hparams.hparams_config_pb(hparams=fields, metrics=metrics)
    session = hparams.hparams_pb(shown, trial_id=run_id, start_time_secs=time.time())
    return Summary(value=[*config.value, *session.value])
