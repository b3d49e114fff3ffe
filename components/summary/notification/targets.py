"""Where the end of a run is sent to; the address of a webhook is a secret and is never part of this."""

import os
import re
from dataclasses import dataclass

from components.train.machines import setting
from localvertex_base.userinput.errors import UserError

VARIABLE = "IMAGE_TRAINING_WEBHOOK"
"""Environment variable with the address of a webhook, for local runs."""

_PROJECT = r"projects/(?:[a-z0-9.-]+:)?[a-z0-9-]+"
_SECRET = re.compile(rf"({_PROJECT}/secrets/[A-Za-z0-9_-]{{1,255}})(?:/versions/(latest|[0-9]+|[A-Za-z][\w-]*))?")
_TOPIC = re.compile(rf"{_PROJECT}/topics/[A-Za-z][A-Za-z0-9._~+%-]{{2,254}}")


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Names of resources; empty: none."""

    notify_webhook: str = setting("Secret with a webhook's address: projects/PROJECT/secrets/NAME.", default="")
    notify_topic: str = setting("Pub/Sub topic: projects/PROJECT/topics/NAME.", default="")

    def __post_init__(self) -> None:
        """Refuse names that are not valid.

        Raises:
            UserError: One is not valid; the message does not contain it, because it may be the address itself.
        """
        if self.notify_webhook and not _SECRET.fullmatch(self.notify_webhook):
            raise UserError(
                "the webhook's secret has no valid resource name; expected projects/PROJECT/secrets/NAME, "
                "and the address itself in Secret Manager only"
            )
        if self.notify_topic and not _TOPIC.fullmatch(self.notify_topic):
            raise UserError("the topic has no valid resource name; expected projects/PROJECT/topics/NAME")

    @property
    def secret_version(self) -> str:
        """Return the resource name of the secret's version, the latest one unless another is named."""
        found = _SECRET.fullmatch(self.notify_webhook)
        return f"{found[1]}/versions/{found[2] or 'latest'}" if found else ""


def local_address() -> str:
    """Return the address in the environment; empty if there is none."""
    return os.environ.get(VARIABLE, "").strip()
