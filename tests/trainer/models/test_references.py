"""References to weights are checked by their form wherever a configuration is made."""

import pytest

from localvertex._base.userinput.errors import UserError
from trainer.config import TrainConfig


@pytest.mark.parametrize(
    "weights",
    ["run:0123456789abcdef", "run:gs://b/run/checkpoints", "model:Pet images@champion", "sha256:" + "0a" * 32],
)
@pytest.mark.parametrize("model", ["convnet", "resnet50", "package.module:function"])
def test_a_reference_is_accepted_for_every_network(weights: str, model: str) -> None:
    assert TrainConfig(model=model, weights=weights).weights == weights


@pytest.mark.parametrize("weights", ["run:", "run: ", "model:pets", "model:@champion", "model:pets@", "sha256:12"])
@pytest.mark.parametrize("model", ["convnet", "package.module:function"])
def test_another_form_is_refused_in_one_line(weights: str, model: str) -> None:
    with pytest.raises(UserError, match="is not valid; expected") as caught:
        TrainConfig(model=model, weights=weights)
    assert "\n" not in str(caught.value)
