"""The names of models that are made from a source."""

import pytest

from components.names import check_names, model_name_for


@pytest.mark.parametrize(
    ("source", "readable"),
    [
        ("/home/anna/photos", "photos"),
        ("/home/anna/My \"Photos\" 'été'/", "my-photos-ete"),
        ("/home/anna/写真", "images"),
        ("gs://bucket/export/labels.csv", "labels-csv"),
        ("tfds:cifar10:3.0.2", "tfds-cifar10-3-0-2"),
        (f"/{250 * 'a'}", 40 * "a"),
        ("/", "images"),
    ],
)
def test_a_name_is_readable_safe_and_bounded(source: str, readable: str) -> None:
    name = model_name_for(source)
    check_names(model_name=name)
    assert name.rpartition("-")[0] == readable
    assert name == model_name_for(f"{source.rstrip('/')}/")


def test_two_folders_of_one_name_have_two_models_and_none_is_that_of_the_demo() -> None:
    names = [model_name_for(f"/home/{user}/image-training") for user in ("anna", "ben")]
    assert len({*names, "image-training"}) == 3
