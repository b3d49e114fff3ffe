"""Names that Google's components paste into their requests."""

import hashlib
import re
import unicodedata

from localvertex._base.userinput.errors import UserError

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


def model_name_for(source: str) -> str:
    """Return a model name of its own for a source: the last part of its path, and six digits of all of it.

    Without the digits, two folders of one name would compete for one champion.
    """
    path = source.rstrip("/")
    letters = unicodedata.normalize("NFKD", path.rpartition("/")[2]).encode("ascii", "ignore").decode().lower()
    readable = re.sub(r"[^a-z0-9]+", "-", letters)[:40].strip("-") or "images"
    return f"{readable}-{hashlib.sha256(path.encode()).hexdigest()[:6]}"
