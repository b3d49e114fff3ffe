"""Names that Google's components paste into their requests."""

from localvertex_base.userinput.errors import UserError

_UNSAFE = '"\\\n\r\t'
"""Google's components paste names into JSON strings, which these characters would break."""


def check_names(**names: str) -> None:
    """Refuse names with characters that would break a request, and a model without a name.

    Raises:
        UserError: A name cannot be used.
    """
    if not 1 <= len(names.get("model_name", "-")) <= 100:
        raise UserError(f"model_name is {names['model_name']!r}; expected 1 to 100 characters")
    for field, value in names.items():
        if any(character in value for character in _UNSAFE):
            raise UserError(f"{field} is {value!r}; quotes, backslashes and line breaks are not allowed")
