"""The engines, which read, examine and keep images and write their shards: on this machine, or on workers."""

from trainer.data.preparing.engines.distributed import Distributed
from trainer.data.preparing.engines.local import Local

Engine = Local | Distributed
"""Both have the same methods, which `Local` describes. Only the engine itself interprets the offsets of its rows."""
