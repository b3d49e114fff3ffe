"""What the first steps show: the bottleneck."""

from tests.support.learners import make_learner
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.loop import speed


def test_the_bottleneck_is_described(training: Examples, sampler: Sampler) -> None:
    message = speed.describe(make_learner(), training, sampler, 0.01)
    assert message.startswith("1 device: 3,200 img/s, 3,200 per device; the input alone reaches ")
    assert "is the bottleneck" in message
