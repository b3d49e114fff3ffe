"""The `--payload` of Google's launchers: JSON in a string, with placeholders in it."""

import json
from typing import Any

from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Job
from localvertex.values.placeholders import Unresolvable, resolve_json_template, resolve_structure
from localvertex.values.values import restore_integers


def launcher_payload(template: str, job: Job) -> dict[str, Any]:
    """The payload as the launcher decodes it, integers restored.

    Raises:
        TaskFailed: it is no JSON object.
    """

    def warn(placeholder: str) -> None:
        job.context.warnings.say(
            f"{job.label}: the value of {placeholder.removeprefix('.')} holds a quote or a backslash; Vertex puts it "
            "into the payload as it is, and the launcher there will not be able to read it"
        )

    try:
        text = resolve_json_template(template, job.scope, warn)
        # The launchers read with strict=False: line feeds inside strings are accepted.
        payload = json.loads(text, strict=False)
        payload = resolve_structure(payload, job.scope)
    except json.JSONDecodeError as error:
        raise TaskFailed(f"the payload is not JSON: {error}", is_retryable=False) from None
    except Unresolvable as error:
        raise TaskFailed(str(error), is_retryable=False) from None
    if not isinstance(payload, dict):
        raise TaskFailed("the payload is not a JSON object", is_retryable=False)
    return {key: restore_integers(value) for key, value in payload.items()}


def without_empty(value: Any) -> Any:
    """What the launchers send: fields with an empty value dropped, at any depth, and empty objects in lists.

    After `recursive_remove_empty` of google-cloud-pipeline-components 2.22: inside lists, plain values stay even when
    empty; in objects `0`, `false` and `''` go too.
    """
    if isinstance(value, dict):
        cleaned = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item}
    if isinstance(value, list):
        cleaned_items = [without_empty(item) for item in value]
        return [item for item in cleaned_items if isinstance(item, int | float | str) or item]
    return value
