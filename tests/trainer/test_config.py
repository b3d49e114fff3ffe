"""The configuration: its flags, its limits and its fingerprint."""

import argparse
import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest

from localvertex._base.userinput.errors import UserError
from trainer import config
from trainer.config import TrainConfig
from trainer.models import recipes
from trainer.settings import check


def parse(flags: list[str]) -> TrainConfig:
    parser = argparse.ArgumentParser()
    config.add_flags(parser)
    return config.from_namespace(parser.parse_args(flags))


def test_flags_give_back_the_same_configuration() -> None:
    wanted = TrainConfig(model="mnist-cnn", epochs=3, learning_rate=0.1 + 0.2, seed=7, augment="none", weights="a b.h5")
    assert parse(wanted.to_flags()) == wanted


def test_every_field_has_a_flag_with_help() -> None:
    parser = argparse.ArgumentParser()
    config.add_flags(parser)
    text = parser.format_help()
    for name in TrainConfig().to_dict():
        assert f"--{name.replace('_', '-')}" in text
    assert "Examples per step over all devices of all machines together." in " ".join(text.split())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "resnet51"}, "model='resnet51' is not known; did you mean resnet50"),
        ({"model": "EfficientNetV2B0"}, "did you mean efficientnetv2-b0"),
        ({"model": "my-models:build"}, "is not of the form package.module:function"),
        ({"trainable": "some"}, "trainable is 'some'; expected one of: default, head, all"),
        ({"trainable": "head"}, "fine_tuning do not work with model 'convnet'"),
        ({"model": "a.b:c", "trainable": "head"}, "freeze layers in the function itself"),
        ({"model": "resnet50", "weights": "none", "trainable": "head"}, "would freeze random weights"),
        ({"epochs": 0}, "epochs is 0; expected a whole number from 1"),
        ({"epochs": 2.5}, "epochs is 2.5; expected a whole number"),
        ({"epochs": True}, "epochs is True"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"learning_rate": -0.1}, "learning_rate is -0.1"),
        ({"patience": -1}, "patience is -1; expected a whole number from 0"),
        ({"patience": 1, "minimum_accuracy_gain": 1.5}, "minimum_accuracy_gain is 1.5; expected a number from 0 to 1"),
        ({"metric": "recall"}, "metric is 'recall'; expected one of: accuracy, balanced-accuracy, macro-f1"),
        ({"minimum_accuracy_gain": 0.1}, "minimum_accuracy_gain=0.1 has no effect without patience"),
        ({"global_batch_size": 0}, "global_batch_size is 0"),
        ({"seed": 2**31}, "seed is 2147483648"),
        ({"optimizer": "adamw9"}, "expected one of: adam"),
        ({"weights": ""}, "weights is empty"),
        ({"weights": "imagenet"}, "model 'convnet' has no weights='imagenet'"),
        ({"weights": "somewhere"}, "ending in .weights.h5 or .keras"),
    ],
)
def test_wrong_values_are_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        TrainConfig(**fields)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_integral_floats_of_kfp_structures_become_integers() -> None:
    assert TrainConfig(epochs=3.0).epochs == 3
    assert isinstance(TrainConfig(learning_rate=1).learning_rate, float)


def test_fingerprint_tells_configurations_apart() -> None:
    assert TrainConfig().fingerprint() == TrainConfig().fingerprint()
    assert TrainConfig().fingerprint() != TrainConfig(seed=1).fingerprint()


def test_the_fingerprint_of_the_defaults_does_not_change() -> None:
    assert TrainConfig().fingerprint() == "f3dee75b0cc234e9b1abdadc6eb61e152d8384faa9e8b3b0d4f911b2e7065270"


def test_every_field_has_its_help_and_limits_in_one_place() -> None:
    for field in dataclasses.fields(TrainConfig):
        assert field.metadata["help"].endswith(".")
        assert check(field.name, field.default, field.metadata["kind"]) == field.default


def test_unknown_fields_are_refused_by_name() -> None:
    with pytest.raises(UserError, match="unknown configuration field 'batch'"):
        config.from_dict({"batch": 3})


def test_configuration_and_identity_need_no_tensorflow() -> None:
    code = (
        "import sys; import trainer.config, trainer.checkpoints.identity, trainer.data.dataset, trainer.prepare;"
        "import trainer.data.pages.page;"
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_recipe_is_part_of_the_identity_by_its_content() -> None:
    plain, preset = TrainConfig(), TrainConfig(recipe="standard")
    assert "recipe" not in plain.identity_fields()
    assert TrainConfig(recipe="{}").fingerprint() == plain.fingerprint()
    assert preset.fingerprint() != plain.fingerprint()
    assert TrainConfig(recipe=recipes.PRESETS["standard"]) == preset
    assert config.from_dict(preset.to_dict()) == preset == parse(preset.to_flags())


@pytest.mark.parametrize(
    ("recipe", "fields", "message"),
    [
        ({"optimizer": {"class_name": "SGD"}}, {"optimizer": "sgd"}, "optimizer='sgd' and the recipe's optimizer"),
        ({"learning_rate": 0.1}, {"learning_rate": 0.1}, "learning_rate=0.1 and the recipe's learning_rate"),
        ({"augmentation": "light"}, {"augment": "none"}, "augment='none' and the recipe's augmentation"),
        (
            {"learning_rate": {"class_name": "CosineDecay", "config": {"initial_learning_rate": 0.1}}},
            {"warmup_fraction": 0.1},
            "warmup_fraction=0.1 and the recipe's schedule exclude each other; give one",
        ),
        ({"sampling": "balanced"}, {"shuffle": "blocks"}, "shuffle='blocks' and the recipe's sampling exclude each"),
    ],
)
def test_a_recipe_that_contradicts_a_field_is_refused(
    recipe: dict[str, Any], fields: dict[str, Any], message: str
) -> None:
    TrainConfig(recipe=json.dumps(recipe))
    with pytest.raises(UserError) as caught:
        TrainConfig(recipe=json.dumps(recipe), **fields)
    assert message in str(caught.value)


@pytest.mark.parametrize("recipe", [{"augmentation": []}, {"class_weights": {}}, {"sampling": "natural"}])
def test_what_changes_nothing_is_no_other_run(recipe: dict[str, Any]) -> None:
    assert recipes.parse(json.dumps(recipe)) == recipes.Recipe()
    assert TrainConfig(recipe=json.dumps(recipe)).fingerprint() == TrainConfig().fingerprint()


ACCUMULATING = '{"optimizer": {"class_name": "SGD", "config": {"gradient_accumulation_steps": 7}}}'


def test_a_run_ends_with_the_last_whole_group_of_accumulated_gradients() -> None:
    lengths = [
        TrainConfig(recipe=recipe, epochs=5, max_steps=max_steps, global_batch_size=30).num_steps(127)
        for recipe in ("", ACCUMULATING)
        for max_steps in (0, 15, 100)
    ]
    assert lengths == [20, 15, 20, 14, 14, 14]


def test_a_run_without_a_whole_group_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        TrainConfig(recipe=ACCUMULATING, epochs=5, max_steps=6).num_steps(127)
    assert str(caught.value) == (
        "recipe: gradient_accumulation_steps=7, but the run has 5 steps, so the weights would never change;"
        " give fewer, or train longer"
    )


def test_a_number_is_the_peak_of_the_fields_schedule() -> None:
    TrainConfig(recipe='{"learning_rate": 0.1}', warmup_fraction=0.1, learning_rate_schedule="constant")


def test_parameter_servers_refuse_a_recipe() -> None:
    with pytest.raises(UserError, match="recipe does not work with parameter servers"):
        TrainConfig(recipe="standard").check_for_parameter_servers(exact=False)
