"""The traffic split of an endpoint: percentages by the id of a deployed model, by the rules of the API's reference."""

import random
from collections.abc import Collection, Mapping

from localvertex.api.rest.errors import ApiError, Status, invalid

NEW = "0"
"""Id in a request for the model that is being deployed."""

_ALL = 100

Split = dict[str, int]


def check(split: Mapping[str, int], deployed: Collection[str]) -> Split:
    """Return a traffic split, which is empty when the endpoint accepts no traffic.

    Raises:
        ApiError: A share is negative, they do not add up to 100, or an id is not deployed.
    """
    unknown = [each for each in split if each not in deployed]
    if unknown:
        known = ", ".join(deployed) or "none"
        raise invalid(f"trafficSplit: {unknown[0][:100]!r} is not deployed to the endpoint; deployed: {known}")
    if any(share < 0 for share in split.values()):
        raise invalid("trafficSplit: a percentage is negative")
    if split and sum(split.values()) != _ALL:
        raise invalid(f"trafficSplit: the percentages must add up to 100, found {sum(split.values())}")
    return dict(split)


def with_deployed(current: Split, wanted: Mapping[str, int], new_id: str, deployed: Collection[str]) -> Split:
    """Return the split after a deployment: the wanted one, or the current one when the request has none.

    Raises:
        ApiError: See `check`.
    """
    if not wanted:
        return current
    # The id of the new model may be in the request under both names.
    named: Split = {}
    for each, share in wanted.items():
        name = new_id if each == NEW else each
        named[name] = named.get(name, 0) + share
    return check(named, deployed)


def without(current: Split, wanted: Mapping[str, int], removed: str, left: Collection[str]) -> Split:
    """Return the split after a model is undeployed, which is empty when it was the last one.

    Raises:
        ApiError: See `check`; or the model has traffic, and the request does not give it to others.
    """
    if not left:
        return {}
    if wanted:
        if wanted.get(removed):
            raise invalid(f"trafficSplit: {removed} is being undeployed and cannot get traffic")
        return check({each: share for each, share in wanted.items() if each != removed}, left)
    if current.get(removed):
        text = f"deployed model {removed} has {current[removed]}% of the traffic; give a trafficSplit without it"
        raise ApiError(Status.FAILED_PRECONDITION, text)
    return {each: share for each, share in current.items() if each != removed}


def choose(split: Mapping[str, int], endpoint: str) -> str:
    """Return the deployed model that gets a prediction.

    Raises:
        ApiError: None has traffic.
    """
    shares = {each: share for each, share in split.items() if share}
    if not shares:
        text = f"{endpoint} has no deployed model with traffic; deploy one, or set its trafficSplit"
        raise ApiError(Status.FAILED_PRECONDITION, text)
    return random.choices([*shares], weights=[*shares.values()])[0]  # noqa: S311 - load, not a secret
