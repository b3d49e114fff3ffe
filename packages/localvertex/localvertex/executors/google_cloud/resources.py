"""The `gcp_resources` that steps exchange: JSON text that names what a launcher has created."""

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex._base.userinput.spelling import quote
from localvertex.errors import TaskFailed


def single_resource(text: str) -> dict[str, str]:
    """Return the `resourceType` and the `resourceUri` of the only resource.

    Raises:
        TaskFailed: The text does not name exactly one resource.
    """
    try:
        content = parse_json(text, "gcp_resources")
    except UserError as error:
        raise TaskFailed(str(error), is_retryable=False) from None
    resources = content.get("resources") if isinstance(content, dict) else None
    if not isinstance(resources, list) or len(resources) != 1 or not isinstance(resources[0], dict):
        raise TaskFailed(f"gcp_resources {quote(text, 200)}: expected exactly one resource", is_retryable=False)
    return {name: str(resources[0].get(name, "")) for name in ("resourceType", "resourceUri")}
