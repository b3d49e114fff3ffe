"""Recipes: what is refused and how, one spelling, the tables against Keras, and the weights of classes."""

import inspect
import json
from typing import Any

import keras
import pytest
from hypothesis import example, given, settings, strategies as st

from localvertex._base.kinds import Classes, Number
from localvertex._base.userinput.errors import UserError
from trainer.models import recipes
from trainer.models.recipes import LOSSES, OPTIMIZERS, PRESETS, SCHEDULES, Recipe

ADAM = {"class_name": "AdamW"}


def of(**content: Any) -> Recipe:
    return recipes.parse(json.dumps(content))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("standrd", "recipe is 'standrd'; expected one of: standard, fine-tuning, rare-classes, a JSON object"),
        ("[1]", "expected one of: standard"),
        ('{"optimizer"', "recipe is not JSON"),
        ('{"loss": 1, "loss": 2}', "recipe has the key 'loss' twice"),
        ('{"learning_rate": NaN}', "NaN is not a number in JSON"),
        ('{"optimiser": {}}', "recipe has the unknown key 'optimiser'; did you mean optimizer?"),
        ('{"optimizer": "AdamW"}', "recipe.optimizer is 'AdamW'; expected an object {class_name, config}"),
        ('{"optimizer": {}}', "recipe.optimizer.class_name is None; expected one of: Adam, AdamW"),
        ('{"optimizer": {"class_name": "ScheduleFreeAdamW"}}', "expected one of: Adam, AdamW, Lamb, Lion, Nadam"),
        ('{"optimizer": {"class_name": "os.system"}}', "recipe.optimizer.class_name is 'os.system'"),
        ('{"learning_rate": true}', "recipe.learning_rate is True; expected a number from 1e-12 to 1e+06"),
        ('{"learning_rate": 1e400}', "contains the number inf"),
        ('{"learning_rate": {"class_name": "CosineDecay"}}', "CosineDecay has no initial_learning_rate; give it"),
        (
            '{"class_weights": [1, 2]}',
            "recipe.class_weights is [1, 2]; expected one of: none, auto, balanced or an obj",
        ),
        ('{"class_weights": {"a": 0}}', "recipe.class_weights.a is 0; expected a number from 1e-06"),
        ('{"sampling": "even"}', "recipe.sampling is 'even'; expected one of: natural, balanced"),
        ('{"augmentation": [1]}', "recipe.augmentation[0] is 1; expected an object"),
        ('{"fine_tuning": 0.3}', "recipe.fine_tuning is 0.3; expected an object"),
        ('{"fine_tuning": {"start": 1}}', "recipe.fine_tuning.start is 1; expected a number from 0 to 0.999999"),
        ('{"fine_tuning": {"start": -0.1}}', "recipe.fine_tuning.start is -0.1; expected a number from 0"),
        ('{"fine_tuning": {"layers": 0}}', "recipe.fine_tuning.layers is 0; expected a whole number from 1"),
        ('{"fine_tuning": {"layers": "all"}}', "recipe.fine_tuning.layers is 'all'; expected a whole number from 1"),
        ('{"fine_tuning": {"epochs": 3}}', "recipe.fine_tuning has the unknown key 'epochs'"),
        (
            '{"fine_tuning": {"learning_rate_multiplier": 0}}',
            "learning_rate_multiplier is 0; expected a number from 1e",
        ),
        ('{"augmentation": 1}', "recipe.augmentation is 1; expected one of: light, standard, strong or a list"),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        recipes.parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"beta1": 0.9}, "recipe.optimizer AdamW has the unknown key 'beta1'; did you mean beta_1?"),
        ({"ema_overwrite_frequency": 2}, "unknown key 'ema_overwrite_frequency'"),
        ({"loss_scale_factor": 2.0}, "unknown key 'loss_scale_factor'"),
        ({"learning_rate": 0.1}, "unknown key 'learning_rate'"),
        ({"beta_1": "0.9"}, "recipe.optimizer AdamW.beta_1 is '0.9'; expected a number from 0 to 0.999999"),
        ({"beta_1": 1}, "AdamW.beta_1 is 1; expected a number from 0 to 0.999999"),
        ({"clipnorm": None}, "AdamW.clipnorm is None; expected a number from 0"),
        ({"use_ema": 1}, "AdamW.use_ema is 1; expected true or false"),
        ({"ema_momentum": 0.9}, "AdamW has ema_momentum without use_ema, so it has no effect; give both"),
        ({"gradient_accumulation_steps": 2.0}, "expected a whole number from 2 to 999999"),
        ({"gradient_accumulation_steps": 10**400}, "recipe contains an integer of 1329 bits; expected a finite number"),
    ],
)
def test_a_wrong_config_is_refused_in_one_line(config: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        of(optimizer={"class_name": "AdamW", "config": config})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["class_name", "config", "use_ema", "beta_1", "values"]) | st.text(max_size=3),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(content=st.dictionaries(st.sampled_from(list(recipes._RECIPE)) | st.text(max_size=3), JSON, max_size=3))
@example(content={"class_weights": {"\n": None}})
def test_any_json_is_a_recipe_or_refused_in_one_line(content: dict[str, Any]) -> None:
    try:
        found = recipes.parse(json.dumps(content))
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017 - most recipes are refused, some are not
    else:
        assert recipes.parse(found.text) == recipes.parse(recipes.parse(found.text).text)


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=30))
def test_any_text_is_a_recipe_or_refused_in_one_line(text: str) -> None:
    try:
        recipes.parse(text)
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017 - most texts are refused, some are not


def test_spelling_does_not_change_the_text() -> None:
    one = '{"sampling": "balanced", "optimizer": {"config": {"clipnorm": 1, "beta_1": 0.90}, "class_name": "AdamW"}}'
    other = '{"optimizer":{"class_name":"AdamW","config":{"beta_1":9e-1,"clipnorm":1.0}},"sampling":"balanced"}'
    assert recipes.parse(one).text == recipes.parse(other).text
    for nothing in ("", "{}", '{"sampling": "natural"}'):
        assert recipes.parse(nothing).text == ""


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_means_its_content(name: str) -> None:
    assert recipes.parse(name) == recipes.parse(PRESETS[name]) == recipes.parse(recipes.parse(name).text)


@pytest.mark.parametrize(
    ("module", "table", "left_out"),
    [
        (keras.optimizers, OPTIMIZERS, "learning_rate"),
        (keras.optimizers.schedules, SCHEDULES, ""),
        (keras.losses, LOSSES, ""),
    ],
)
def test_the_tables_are_those_of_the_installed_keras(module: Any, table: Classes, left_out: str) -> None:
    for name in table.keys:
        parameters = inspect.signature(getattr(module, name)).parameters
        for key, kind in table.config(name).items():
            assert key in parameters, (name, key)
            default = parameters[key].default
            if isinstance(default, bool):
                assert kind is bool
            elif isinstance(default, float):
                assert isinstance(kind, Number)
        own = {key for key, each in parameters.items() if each.default is inspect.Parameter.empty and key != "kwargs"}
        ends = {key for key in own if key.endswith("decay_steps")}
        assert own - ends - {left_out} == {key for key in table.required.split() if key in table.config(name)}, name


def test_weights_of_classes_have_a_mean_of_1_over_the_examples() -> None:
    counts, names = [60, 20, 10, 0], ["a", "b", "c", "d"]
    for weights in ("auto", "balanced", {"a": 0.5, "c": 4}):
        found = of(class_weights=weights).weights_of(counts, names)
        assert sum(weight * count for weight, count in zip(found, counts, strict=True)) == pytest.approx(sum(counts))
    balanced = of(class_weights="balanced").weights_of(counts, names)
    assert balanced[:3] == pytest.approx([0.5, 1.5, 3.0])
    given_weights = of(class_weights={"a": 0.5, "c": 4}).weights_of(counts, names)
    assert given_weights[0] / given_weights[1] == pytest.approx(0.5)
    assert given_weights[2] / given_weights[1] == pytest.approx(4.0)


def test_classes_have_weights_from_three_times_the_smallest_on() -> None:
    for recipe in (Recipe(), of(class_weights="auto")):
        assert recipe.for_data([29, 10, 0]).text == ""
        found = recipe.for_data([30, 10, 0])
        assert found == found.for_data([30, 10, 0]) == of(class_weights="auto")
        assert found.weights_of([30, 10, 0], "abc") != []


def test_what_a_recipe_says_of_weights_stays() -> None:
    for given_weights in ("balanced", {"a": 2.0}):
        assert of(class_weights=given_weights).for_data([99, 1]) == of(class_weights=given_weights)
    none = of(class_weights="none")
    assert none.for_data([99, 1]) == none
    assert none.weights_of([99, 1], "ab") == []
    # Where there would be no weights anyway, it is no other run.
    assert none.for_data([99, 99]) == Recipe()


def test_balanced_sampling_has_balanced_the_classes_already() -> None:
    sampled = of(sampling="balanced")
    assert of(class_weights="auto", sampling="balanced").for_data([90, 10]) == sampled.for_data([90, 10]) == sampled
    assert of(class_weights="balanced", sampling="balanced").weights_of([90, 10], "ab") == [1.0, 1.0]


def test_weights_of_other_classes_are_refused() -> None:
    with pytest.raises(UserError, match="class_weights has the unknown key 'catt'; did you mean cat"):
        of(class_weights={"catt": 2}).weights_of([1, 2], ["cat", "dog"])
