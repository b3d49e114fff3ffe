"""Names that Google's components paste into their requests."""

from collections.abc import Mapping

from components.container_image import check_image
from localvertex_base.userinput.errors import UserError

_UNSAFE = '"\\\n\r\t'
"""Google's components paste names into JSON strings, which these characters would break."""


def check_names(names: Mapping[str, str]) -> None:
    """Refuse names that Google's components cannot take.

    Raises:
        UserError: A name is empty, too long or has characters that would break a request.
    """
    if not 1 <= len(names.get("model_name", "-")) <= 100:
        raise UserError(f"model_name is {names['model_name']!r}; expected 1 to 100 characters")
    if names.get("serving_image"):
        check_image("serving_image", names["serving_image"])
    for field, value in names.items():
        if any(character in value for character in _UNSAFE):
            raise UserError(f"{field} is {value!r}; quotes, backslashes and line breaks are not allowed")
    if names.get("tensorboard") and not names.get("service_account"):
        raise UserError("tensorboard is set without service_account; TensorBoard needs one, which writes its logs")
