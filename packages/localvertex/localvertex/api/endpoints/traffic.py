"""The traffic split of an endpoint: one deployed model has all of it, because a second process would only wait."""

from collections.abc import Collection, Mapping

from localvertex.api.rest.errors import ApiError, Status, invalid

NEW = "0"
"""In a request: the model that is being deployed."""

_ALL = 100

Split = dict[str, int]


def check(split: Mapping[str, int], deployed: Collection[str]) -> Split:
    """Return a traffic split without zeros, which is empty when the endpoint accepts no traffic.

    Raises:
        ApiError: An id is not deployed, or not exactly one has all traffic.
    """
    for each in split:
        if each not in deployed:
            known = ", ".join(deployed) or "none"
            raise invalid(f"trafficSplit: {each[:100]!r} is not deployed to the endpoint; deployed: {known}")
    shares = {each: share for each, share in split.items() if share}
    if shares and [*shares.values()] != [_ALL]:
        raise invalid(f"trafficSplit: this server sends all traffic to one model: expected one share of {_ALL}")
    return shares


def with_deployed(current: Split, wanted: Mapping[str, int], new_id: str, deployed: Collection[str]) -> Split:
    """Return the split after a deployment: the wanted one, or the current one when the request has none.

    Raises:
        ApiError: See `check`.
    """
    return check({new_id if each == NEW else each: share for each, share in wanted.items()} or current, deployed)


def without(current: Split, wanted: Mapping[str, int], removed: str, left: Collection[str]) -> Split:
    """Return the split after a model is undeployed, which is empty when it was the last one.

    Raises:
        ApiError: See `check`; or the model has the traffic, and the request does not give it to another.
    """
    if left and (wanted or current).get(removed):
        text = f"deployed model {removed} has the traffic of the endpoint; give a trafficSplit without it"
        raise ApiError(Status.FAILED_PRECONDITION, text)
    return check({each: share for each, share in (wanted or current).items() if each != removed}, left)


def choose(split: Mapping[str, int], endpoint: str) -> str:
    """Return the deployed model that gets a prediction.

    Raises:
        ApiError: None has traffic.
    """
    for each, share in split.items():
        if share:
            return each
    text = f"{endpoint} has no deployed model with traffic; deploy one, or set its trafficSplit"
    raise ApiError(Status.FAILED_PRECONDITION, text)
