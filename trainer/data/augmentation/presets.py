"""The layers that change training images at random, by name; nothing here imports Keras.

An augmentation is a list in JSON. An entry is a layer, or a list of layers of which each example gets one, all with
equal probability; Identity changes nothing. Crops take their height and width as fractions of the image's, and
are enlarged to the image's size.
"""

MIXING = ("CutMix", "MixUp")
"""Layers that mix two examples and make fractions of their labels."""
LAYERS = (
    "AutoContrast CenterCrop ContrastLimitedAdaptiveHistogramEqualization CutMix Equalization Identity MixUp"
    " RandAugment RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast RandomCrop"
    " RandomElasticTransform RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale RandomHue RandomInvert"
    " RandomPerspective RandomPosterization RandomRotation RandomSaturation RandomSharpness RandomShear"
    " RandomTranslation RandomZoom Rescaling Solarization"
).split()
"""Classes of keras.layers that take all random numbers from their generator; AugMix draws while it is traced."""
PRESETS = {
    "light": """[
        [{"class_name": "Identity", "config": {}},
         {"class_name": "Identity", "config": {}},
         {"class_name": "RandomCrop", "config": {"height": 0.9, "width": 0.9}},
         {"class_name": "RandomCrop", "config": {"height": 0.94, "width": 0.94}},
         {"class_name": "RandomCrop", "config": {"height": 0.97, "width": 0.97}}],
        [{"class_name": "Identity", "config": {}},
         {"class_name": "RandomBrightness", "config": {"factor": 0.2}}]]""",
    "standard": """[
        [{"class_name": "Identity", "config": {}},
         {"class_name": "Identity", "config": {}},
         {"class_name": "Identity", "config": {}},
         {"class_name": "RandomCrop", "config": {"height": 0.8, "width": 0.8}},
         {"class_name": "RandomCrop", "config": {"height": 0.8, "width": 0.95}},
         {"class_name": "RandomCrop", "config": {"height": 0.95, "width": 0.8}},
         {"class_name": "RandomCrop", "config": {"height": 0.95, "width": 0.95}}],
        [{"class_name": "Identity", "config": {}},
         {"class_name": "Rescaling", "config": {"scale": 0.6, "offset": 51}},
         {"class_name": "Rescaling", "config": {"scale": 0.8, "offset": 26}},
         {"class_name": "Rescaling", "config": {"scale": 1.25, "offset": -32}},
         {"class_name": "Rescaling", "config": {"scale": 1.6, "offset": -77}},
         {"class_name": "RandomBrightness", "config": {"factor": 0.2}},
         {"class_name": "RandomBrightness", "config": {"factor": 0.3}}]]""",
    "strong": """[
        {"class_name": "RandomFlip", "config": {"mode": "horizontal"}},
        [{"class_name": "Identity", "config": {}},
         {"class_name": "RandomRotation", "config": {"factor": 0.06}},
         {"class_name": "RandomShear", "config": {"x_factor": 0.2, "y_factor": 0.2}},
         {"class_name": "RandomPerspective", "config": {"factor": 1.0, "scale": 0.3}}],
        [{"class_name": "Identity", "config": {}},
         {"class_name": "RandomCrop", "config": {"height": 0.65, "width": 0.65}},
         {"class_name": "RandomCrop", "config": {"height": 0.65, "width": 0.85}},
         {"class_name": "RandomCrop", "config": {"height": 0.85, "width": 0.65}},
         {"class_name": "RandomCrop", "config": {"height": 0.85, "width": 0.85}}],
        [{"class_name": "Identity", "config": {}},
         {"class_name": "RandomBrightness", "config": {"factor": 0.3}},
         {"class_name": "RandomContrast", "config": {"factor": [0.5, 0.5]}},
         {"class_name": "RandomSharpness", "config": {"factor": 1.0}},
         {"class_name": "RandomColorDegeneration", "config": {"factor": 0.8}},
         {"class_name": "RandomHue", "config": {"factor": 0.1}},
         {"class_name": "RandomSaturation", "config": {"factor": [0.3, 0.7]}},
         {"class_name": "RandomPosterization", "config": {"factor": [3, 7]}},
         {"class_name": "RandomGaussianBlur", "config": {"sigma": [0.5, 1.0]}},
         {"class_name": "AutoContrast", "config": {}}],
        [{"class_name": "Identity", "config": {}},
         {"class_name": "RandomErasing", "config": {"scale": [0.05, 0.2], "fill_value": 128}}],
        [{"class_name": "Identity", "config": {}},
         {"class_name": "MixUp", "config": {}},
         {"class_name": "CutMix", "config": {}}]]""",
}
"""Preset -> JSON. Light and standard contain only what is cheap: a crop costs a tenth of RandomZoom, and Rescaling
about a middle grey a tenth of RandomContrast. Only strong mirrors images, which letters and digits do not survive, and
mixes. A preset that changes would change runs that exist; a test holds them."""
