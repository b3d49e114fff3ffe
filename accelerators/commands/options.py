"""Options that several sub-commands share."""

import argparse
from datetime import date
from pathlib import Path

from accelerators.catalogue.catalogue import CATALOGUE_VARIABLE, Catalogue, load_catalogue
from userinput import cli
from userinput.errors import UserError
from userinput.spelling import closest, did_you_mean


def parser(name: str, description: str, epilog: str = "") -> cli.Parser:
    """Return a parser with what every sub-command has."""
    made = cli.Parser(f"python -m accelerators {name}", description=description, epilog=epilog)
    made.add_argument(
        "--catalogue",
        type=Path,
        metavar="DIR",
        help=f"folder with tables of your own that replace or extend rows (also: {CATALOGUE_VARIABLE})",
    )
    return made


def add_today(made: argparse.ArgumentParser) -> None:
    """Add --today."""
    made.add_argument(
        "--today", type=day, metavar="YYYY-MM-DD", help="judge end-of-support dates as of this day (default: today)"
    )


def day(text: str) -> date:
    """Read a date for argparse."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date; write it as 2026-09-15") from None


def known_region(catalogue: Catalogue, region: str | None, *, field: str = "--region") -> str:
    """Return a region that the tables know; empty for none.

    Args:
        catalogue: The tables.
        region: What the user gave.
        field: Where the user gave it.

    Raises:
        UserError: If they do not know it.
    """
    places = {*catalogue.training_regions, *(place for _, place in catalogue.regions)}
    if region and region not in places:
        raise UserError(f"{field} is {region!r}, which is no region with training{did_you_mean(region, places)}")
    return region or ""


def known_accelerator(catalogue: Catalogue, name: str) -> str:
    """Return the full name for NVIDIA_TESLA_T4, nvidia-tesla-t4 or T4.

    Raises:
        UserError: If no accelerator, or more than one, is meant.
    """
    folded = name.upper().replace("-", "_")
    if folded in catalogue.accelerators:
        return folded
    parts = set(folded.split("_"))
    matches = [full for full in catalogue.accelerators if parts <= set(full.split("_"))]
    if len(matches) == 1:
        return matches[0]
    near = matches or closest(name, catalogue.accelerators, 3)
    raise UserError(f"--accelerator is {name!r}; did you mean one of {', '.join(near or catalogue.accelerators)}?")


def tables(arguments: argparse.Namespace) -> Catalogue:
    """Return the catalogue that --catalogue asks for."""
    return load_catalogue(arguments.catalogue)
