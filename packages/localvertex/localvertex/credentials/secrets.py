"""Variables that look like secrets, and the places from which their values are removed."""

import html
import json
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from localvertex._base.nested import changed, parts
from localvertex.processes.sinks import MASK

_MIN_LENGTH = 6
"""Shorter values, such as 1 or true, occur in many texts that are not the secret."""

_MIN_PATH_LENGTH = 16
"""Shorter paths of webhooks, such as api/hooks, occur in many texts that are not the secret."""

_WORDS = frozenset("APIKEY CREDENTIAL CREDENTIALS KEY PASSPHRASE PASSWD PASSWORD PAT PWD SECRET SECRETS TOKEN".split())
_NOT_SECRET = frozenset(("PWD", "OLDPWD"))
_ADDRESSES = frozenset(("WEBHOOK", "WEBHOOKS"))


def looks_like_secret(name: str) -> bool:
    """Return whether a variable's name marks its value as a secret, e.g. `HF_TOKEN` or `db-password`."""
    return name.upper() not in _NOT_SECRET and not _WORDS.isdisjoint(_words(name))


def is_secret_address(name: str) -> bool:
    """Return whether a variable's name marks its value as a webhook's address, e.g. `TEAM_WEBHOOK_URL`.

    Who knows the address can post there. A step needs it to send, but no file needs it.
    """
    return not _ADDRESSES.isdisjoint(_words(name))


def is_masked(name: str) -> bool:
    """Return whether the value of a variable is shown in no log, record, page or list of processes."""
    return looks_like_secret(name) or is_secret_address(name)


def _words(name: str) -> list[str]:
    return name.upper().replace("-", "_").split("_")


class Secrets:
    """The values of a run's secrets, and their removal from what the run leaves behind. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: set[str] = set()
        self._unused: set[str] = set()

    def learn(self, variables: Mapping[str, str]) -> None:
        """Add the values of the variables that look like secrets or have the address of a webhook."""
        names = {name for name in variables if is_masked(name)}
        found = {variables[name] for name in names if len(variables[name]) >= _MIN_LENGTH}
        paths = {_path(variables[name]) for name in names if is_secret_address(name)}
        found |= {path for path in paths if len(path) >= _MIN_PATH_LENGTH}
        # The path of a file with credentials is not a secret.
        with self._lock:
            self._values |= {text for text in found if not os.path.isabs(text)}

    def learn_token(self, token: str) -> None:
        """Add the token of a run's endpoint, which no log is masked for before it is used: few steps ever do."""
        with self._lock:
            self._values.add(token)
            self._unused.add(token)

    def use_tokens(self) -> None:
        """Note that a step has used the token of the endpoint."""
        with self._lock:
            self._unused.clear()

    def live(self) -> list[str]:
        """Return what must not even get into a log that is being written; what else is known is removed later."""
        with self._lock:
            is_needed = bool(self._values - self._unused)
        return self.spellings() if is_needed else []

    def learn_declared(self, values: Any) -> None:
        """Add the variables that inputs of the pipeline declare for containers of custom jobs."""
        found = [(each.get("name"), each.get("value")) for each in parts(values) if isinstance(each, dict)]
        self.learn({name: text for name, text in found if isinstance(name, str) and isinstance(text, str)})

    def remove(self, value: Any) -> Any:
        """Return a value of any shape with the secrets in its texts replaced."""
        known = self.spellings()

        def cleaned(text: Any) -> Any:
            for each in known if isinstance(text, str) else ():
                text = text.replace(each, MASK)
            return text

        return changed(value, cleaned) if known else value

    def remove_from(self, files: Iterable[Path]) -> None:
        """Replace the secrets in these files, which no process may be writing."""
        known = [text.encode() for text in self.spellings()]
        for path in files if known else ():
            content = path.read_bytes()
            cleaned = content
            for text in known:
                cleaned = cleaned.replace(text, MASK.encode())
            if cleaned != content:
                path.write_bytes(cleaned)

    def spellings(self) -> list[str]:
        """Return the values as they are and as JSON and pages write them, longest first."""
        with self._lock:
            forms = {form for text in self._values for form in (text, json.dumps(text)[1:-1])}
        escaped = {html.escape(form) for form in forms} | {
            # As Jinja and as Markdown write it.
            html.escape(form).replace(*replaced)
            for form in forms
            for replaced in (("&quot;", "&#34;"), ("&#x27;", "'"))
        }
        return sorted(forms | escaped, key=len, reverse=True)


def _path(address: str) -> str:
    """Return the secret part of a webhook's address: the errors of urllib3 contain the path without the host."""
    return address.partition("://")[2].partition("/")[2]
