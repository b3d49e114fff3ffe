"""Limits of a delivery, its retries, and its failure, whose text never contains an address."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long the notification may take."""

    connect_seconds: float = 5.0
    answer_seconds: float = 10.0
    """Longest silence while waiting for an answer."""
    attempts: int = 3
    pause_seconds: float = 1.0
    """Pause before the second attempt, multiplied by four for each later one."""
    total_seconds: float = 90.0
    """Time for everything together, for a receiver that answers a byte at a time."""

    @property
    def timeout(self) -> tuple[float, float]:
        """Return the time limits as requests takes them."""
        return self.connect_seconds, self.answer_seconds


class NotSentError(Exception):
    """The notification was not delivered; the message is part of one line and contains no address."""


class TemporaryError(NotSentError):
    """Another attempt may succeed."""


def call_with_retries(call: Callable[[], Answer], limits: Limits) -> Answer:
    """Return what a call returns, after further attempts if a failure is temporary.

    Raises:
        NotSentError: All attempts failed, or one failed for good.
    """
    for attempt in range(1, limits.attempts):
        try:
            return call()
        except TemporaryError:
            time.sleep(limits.pause_seconds * 4 ** (attempt - 1))
    try:
        return call()
    except TemporaryError as error:
        raise NotSentError(f"{error}, in {limits.attempts} attempts") from None


def check_status(code: int, detail: str = "") -> None:
    """Accept a status code of success.

    Args:
        code: Status code of the answer.
        detail: The service's own message, if it cannot contain an address.

    Raises:
        TemporaryError: The receiver may answer differently later.
        NotSentError: It will not.
    """
    text = f"the answer was {code}{f' ({detail})' if detail else ''}"
    if 300 <= code < 400:
        raise NotSentError(f"{text}, a redirect, which is not followed")
    if code == 429 or code >= 500:
        raise TemporaryError(text)
    if not 200 <= code < 300:
        raise NotSentError(text)
