"""Which layers change training images at random: presets, and what a list of one's own may contain.

A list is applied in its order. Of {"one_of": [...]}, each example gets one entry, all with equal probability; the entry
[] changes nothing. Everything is checked here without importing Keras.
"""

from collections.abc import Callable
from typing import Any

from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import quote

MIXING = ("CutMix", "MixUp")
"""Layers that mix an example with its partner; their labels become fractions."""
LAYERS = (
    *MIXING,
    "AutoContrast",
    "CenterCrop",
    "Equalization",
    "RandAugment",
    "RandomBrightness",
    "RandomColorDegeneration",
    "RandomColorJitter",
    "RandomContrast",
    "RandomCrop",
    "RandomElasticTransform",
    "RandomErasing",
    "RandomFlip",
    "RandomGaussianBlur",
    "RandomGrayscale",
    "RandomHue",
    "RandomInvert",
    "RandomPerspective",
    "RandomPosterization",
    "RandomRotation",
    "RandomSaturation",
    "RandomSharpness",
    "RandomShear",
    "RandomTranslation",
    "RandomZoom",
    "Rescaling",
    "Resizing",
    "Solarization",
)
"""Classes of keras.layers whose random numbers follow from their generator. AugMix draws while it is traced."""


def check(spec: Any, location: str = "augmentation") -> None:
    """Refuse what is neither a preset's name nor a list of allowed layers and choices.

    Raises:
        UserError: With the location of the first wrong entry.
    """
    if isinstance(spec, str) and location == "augmentation":
        if spec not in PRESETS:
            raise UserError(f"{location}={quote(spec)} is not known; choose one of {', '.join(PRESETS)}, or give a list")
    elif isinstance(spec, list):
        for number, entry in enumerate(spec):
            check(entry, f"{location}[{number}]")
    elif not isinstance(spec, dict) or set(spec) not in ({"one_of"}, {"class_name", "config"}):
        raise UserError(f"{location}={quote(spec)} is not a layer; expected an object with class_name and config, or one_of")
    elif "one_of" in spec:
        if not isinstance(spec["one_of"], list) or not spec["one_of"]:
            raise UserError(f"{location}.one_of={quote(spec['one_of'])}; expected a list of at least one entry")
        check(spec["one_of"], f"{location}.one_of")
    elif (name := spec["class_name"]) not in LAYERS:
        raise UserError(
            f"{location}.class_name={quote(name)} is not known or cannot resume exactly; choose one of {', '.join(LAYERS)}"
        )
    elif not isinstance(spec["config"], dict) or "seed" in spec["config"]:
        raise UserError(f"{location}.config={quote(spec['config'])}; expected an object without a seed, which the run has")


def mixes(entry: Any) -> bool:
    """Return whether a layer, or one inside an entry, mixes examples."""
    if isinstance(entry, list):
        return any(map(mixes, entry))
    return mixes(entry["one_of"]) if "one_of" in entry else entry["class_name"] in MIXING


def _layer(class_name: str, **config: Any) -> dict[str, Any]:
    return {"class_name": class_name, "config": config}


def _zoom(size: int, *parts: float) -> list[Any]:
    """Enlarge a part at a random place, whose edges are fractions of the image's, or change nothing.

    RandomZoom costs ten times as much, because it moves each pixel.
    """
    edges = [max(1, min(size - 1, round(size * part))) for part in parts]
    crops = [_layer("RandomCrop", height=height, width=width) for height in edges for width in edges]
    return [{"one_of": [[], *crops]}, _layer("Resizing", height=size, width=size)]


_BRIGHTNESS = _layer("RandomBrightness", factor=0.2)
_CONTRASTS = [_layer("Rescaling", scale=scale, offset=128 * (1 - scale)) for scale in (0.6, 0.8, 1.25, 1.6)]
"""Scaled about a middle grey, at a twentieth of the cost of RandomContrast, which needs the mean of the pixels."""
_SHARPNESS, _GREYNESS = _layer("RandomSharpness", factor=1.0), _layer("RandomColorDegeneration", factor=0.7)
PRESETS: dict[str, Callable[[int], list[Any]]] = {
    "light": lambda size: [*_zoom(size, 0.9, 0.95), {"one_of": [[], _BRIGHTNESS]}],
    "standard": lambda size: [
        *_zoom(size, 0.8, 0.92),
        {"one_of": [[], [], _BRIGHTNESS, _BRIGHTNESS, _BRIGHTNESS, *_CONTRASTS, _SHARPNESS]},
    ],
    "strong": lambda size: [
        _layer("RandomFlip", mode="horizontal"),
        *_zoom(size, 0.65, 0.85),
        {
            "one_of": [
                [],
                _layer("RandomRotation", factor=0.06),
                _layer("RandomShear", x_factor=0.2, y_factor=0.2),
                _layer("RandomPerspective", factor=1.0, scale=0.3),
            ]
        },
        {"one_of": [[], _BRIGHTNESS, *_CONTRASTS]},
        {
            "one_of": [
                [],
                _SHARPNESS,
                _GREYNESS,
                _layer("RandomHue", factor=0.1),
                _layer("RandomSaturation", factor=[0.3, 0.7]),
                _layer("RandomPosterization", factor=[3, 7]),
                _layer("RandomGaussianBlur", kernel_size=3, sigma=[0.5, 1.0]),
                _layer("AutoContrast"),
            ]
        },
        {"one_of": [[], _layer("RandomErasing", scale=[0.05, 0.2], fill_value=128.0)]},
        {"one_of": [[], _layer("MixUp"), _layer("CutMix")]},
    ],
}
"""Preset -> its list for an image size. Only strong mirrors images, which letters and digits do not survive."""
