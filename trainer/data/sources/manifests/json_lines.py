"""JSON Lines of Vertex AI: `imageGcsUri`, `classificationAnnotation` and `dataItemResourceLabels`."""

import json
from typing import Any

from localvertex._base.userinput.unique_keys import RepeatedKey, load_json
from trainer.data.sources.manifests.entry import BadLine, Entry, OtherTask, clean_label, split_of

_ML_USE = "aiplatform.googleapis.com/ml_use"
_OTHER_KEYS = {
    "multiLabelClassificationAnnotation": "multi-label classification",
    "multiLabelClassificationAnnotations": "multi-label classification",
    "boundingBoxAnnotation": "object detection",
    "boundingBoxAnnotations": "object detection",
    **dict.fromkeys(
        (
            *("segmentationAnnotation", "segmentationAnnotations", "maskAnnotation", "maskAnnotations"),
            *("polygonAnnotation", "polygonAnnotations", "polylineAnnotation", "polylineAnnotations"),
        ),
        "image segmentation",
    ),
    **dict.fromkeys(("textContent", "textGcsUri", "textSegmentAnnotations", "sentimentAnnotation"), "text"),
    **dict.fromkeys(("videoGcsUri", "timeSegmentAnnotations", "temporalBoundingBoxAnnotations"), "video"),
}
"""Keys that only manifests of another task have."""


def parse(text: str, *, is_labelled: bool = True) -> Entry:
    """Return what a line states; without labels, all but the address is ignored.

    Raises:
        BadLine: It cannot be used.
        OtherTask: It has several labels, or a key of another task.
    """
    value = _object(text)
    if is_labelled and (other := _OTHER_KEYS.keys() & value.keys()):
        raise OtherTask(_OTHER_KEYS[min(other)])
    address = value.get("imageGcsUri")
    if not isinstance(address, str) or not address.strip():
        raise BadLine("no imageGcsUri")
    if not is_labelled:
        return Entry(address=address.strip(), label="", split=None)
    return Entry(address=address.strip(), label=_label(value), split=_split(value))


def _object(text: str) -> dict[str, Any]:
    try:
        value = load_json(text)
    except RepeatedKey:
        raise BadLine("not JSON: a key is repeated") from None
    except RecursionError:
        raise BadLine("not JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise BadLine(f"not JSON: {error.msg}, column {error.colno}") from None
    except ValueError as error:
        # Python's advice on long numbers comes after a semicolon.
        raise BadLine(f"not JSON: {str(error).partition(';')[0]}") from None
    if not isinstance(value, dict):
        raise BadLine("not a JSON object")
    return value


def _label(value: dict[str, Any]) -> str:
    """Return the label. Jobs get it in a list, `classificationAnnotations`, which also holds several labels."""
    several = value.get("classificationAnnotations") or []
    if not isinstance(several, list):
        raise BadLine("classificationAnnotations is not a list")
    single = value.get("classificationAnnotation")
    annotations = several if single is None else [single, *several]
    names = [each.get("displayName") if isinstance(each, dict) else None for each in annotations]
    if not names:
        raise BadLine("no label")
    if not all(isinstance(name, str) for name in names):
        raise BadLine("an annotation without the text displayName")
    first, *others = {clean_label(str(name)) for name in names}
    if others:
        raise OtherTask("multi-label classification")
    return first


def _split(value: dict[str, Any]) -> str | None:
    labels = value.get("dataItemResourceLabels")
    if labels is None:
        return None
    if not isinstance(labels, dict):
        raise BadLine("dataItemResourceLabels is not a JSON object")
    ml_use = labels.get(_ML_USE)
    if ml_use is None:
        return None
    if not isinstance(ml_use, str):
        raise BadLine("ml_use is not text")
    return split_of(ml_use)
