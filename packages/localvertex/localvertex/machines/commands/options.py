"""Values that several sub-commands take."""

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import closest, did_you_mean, join_or
from localvertex.machines.catalogue import nearest
from localvertex.machines.catalogue.catalogue import Catalogue


def known_region(catalogue: Catalogue, region: str | None, *, field: str = "--region") -> str:
    """Return a region that the tables contain, or "" if none is given.

    Args:
        catalogue: The tables.
        region: The region as the user gave it.
        field: The option or field that it comes from.

    Raises:
        UserError: The tables do not contain it.
    """
    regions = {*catalogue.training_regions, *(name for _, name in catalogue.regions)}
    if region and region not in regions:
        raise UserError(f"{field} is {region!r}, which is not a region with training{did_you_mean(region, regions)}")
    return region or ""


def known_accelerator(catalogue: Catalogue, name: str) -> str:
    """Return the full name for NVIDIA_TESLA_T4, nvidia-tesla-t4 or T4.

    Raises:
        UserError: The name matches no accelerator, or more than one.
    """
    folded = name.upper().replace("-", "_")
    if folded in catalogue.accelerators:
        return folded
    matches = nearest.named(name, catalogue.accelerators)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UserError(f"--accelerator is {name!r}, which matches several; use {join_or(matches)}")
    near = closest(name, catalogue.accelerators, 3)
    hint = f"did you mean {join_or(near)}?" if near else f"expected {join_or(catalogue.accelerators)}"
    raise UserError(f"--accelerator is {name!r}, which is unknown; {hint}")
