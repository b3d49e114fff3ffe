"""Options that several sub-commands share."""

import argparse
from datetime import date

from accelerators.catalogue.catalogue import CATALOGUE_VARIABLE, Catalogue, load_catalogue
from localvertex_base.userinput import cli
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import closest, did_you_mean, join_or


def parser(name: str, description: str, epilog: str) -> cli.Parser:
    """Return a parser with the options of every sub-command."""
    made = cli.Parser(f"python -m accelerators {name}", description=description, epilog=epilog)
    made.add_argument(
        "--catalogue",
        type=cli.folder,
        metavar="DIR",
        help=f"folder with your own tables; rows replace or extend the packaged ones (or set {CATALOGUE_VARIABLE})",
    )
    return made


def add_format(made: argparse.ArgumentParser) -> None:
    """Add --format."""
    made.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")


def add_today(made: argparse.ArgumentParser) -> None:
    """Add --today."""
    made.add_argument(
        "--today", type=_day, metavar="YYYY-MM-DD", help="date for end-of-support checks (default: today)"
    )


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date; expected e.g. 2026-09-15") from None


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
    parts = set(folded.split("_"))
    matches = [full for full in catalogue.accelerators if parts <= set(full.split("_"))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UserError(f"--accelerator is {name!r}, which matches several; use {join_or(matches)}")
    near = closest(name, catalogue.accelerators, 3)
    hint = f"did you mean {join_or(near)}?" if near else f"expected {join_or(catalogue.accelerators)}"
    raise UserError(f"--accelerator is {name!r}, which is unknown; {hint}")


def tables(options: argparse.Namespace) -> Catalogue:
    """Return the catalogue for --catalogue."""
    return load_catalogue(options.catalogue)
