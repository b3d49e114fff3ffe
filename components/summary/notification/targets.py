"""Where the end of a run is sent to; the address of a webhook is a secret and is never part of this."""

import os
import re
from dataclasses import dataclass

from localvertex_base.userinput.errors import UserError

VARIABLE = "IMAGE_TRAINING_WEBHOOK"
"""Environment variable with the address of a webhook, for local runs."""

_PROJECT = r"projects/(?:[a-z0-9.-]+:)?[a-z0-9-]+"
_SECRET = re.compile(rf"({_PROJECT}/secrets/[A-Za-z0-9_-]{{1,255}})(?:/versions/(latest|[0-9]+|[A-Za-z][\w-]*))?")
_TOPIC = re.compile(rf"{_PROJECT}/topics/[A-Za-z][A-Za-z0-9._~+%-]{{2,254}}")


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Names of resources; empty: none."""

    secret: str = ""
    """Resource name of the secret with the webhook's address, with or without a version."""
    topic: str = ""
    """Resource name of a Pub/Sub topic."""

    def __post_init__(self) -> None:
        """Refuse names that are not valid.

        Raises:
            UserError: One is not valid; the message does not contain it, because it may be the address itself.
        """
        if self.secret and not _SECRET.fullmatch(self.secret):
            raise UserError(
                "the webhook's secret has no valid resource name; expected projects/PROJECT/secrets/NAME, "
                "and the address itself in Secret Manager only"
            )
        if self.topic and not _TOPIC.fullmatch(self.topic):
            raise UserError("the topic has no valid resource name; expected projects/PROJECT/topics/NAME")

    @property
    def secret_version(self) -> str:
        """Return the resource name of the secret's version, the latest one unless another is named."""
        found = _SECRET.fullmatch(self.secret)
        return f"{found[1]}/versions/{found[2] or 'latest'}" if found else ""


def local_address() -> str:
    """Return the address in the environment; empty if there is none."""
    return os.environ.get(VARIABLE, "").strip()
