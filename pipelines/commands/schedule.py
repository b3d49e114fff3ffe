"""`python -m pipelines schedule`: manages the recurring runs of `schedules.yaml`."""

import argparse
from datetime import UTC, datetime

from pipelines.schedules import calls as schedule_calls
from pipelines.schedules.file import DEFAULT_FILE, read_schedules
from pipelines.schedules.plan import plan, prune
from pipelines.vertex import Location, add_location, location_from

_VERBS = {
    "plan": "show what apply would do",
    "apply": "make the schedules of the service match the file",
    "list": "show the schedules of a region",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of `schedule`."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, text in _VERBS.items():
        added = verbs.add_parser(verb, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if verb != "list":
            added.add_argument(
                "file", metavar="FILE", nargs="?", default=DEFAULT_FILE, help="schedule file (%(default)s)"
            )
            added.add_argument(
                "--prune", action="store_true", help="delete managed schedules that are no longer in the file"
            )
        add_location(added)


def run(options: argparse.Namespace) -> int:
    """Run one verb.

    Returns:
        The exit code 0.
    """
    location = location_from(options)
    if options.verb != "list":
        _match_file(options, location)
        return 0
    for schedule in schedule_calls.list_schedules(location):
        next_run = schedule.get("nextRunTime", "-")
        print(f"{schedule['displayName']}  {schedule['state']}  {schedule['cron']}  next {next_run}")
    return 0


def _match_file(options: argparse.Namespace, location: Location) -> None:
    schedules = read_schedules(options.file, location)
    for schedule in schedules:
        for text in schedule.warnings:
            print(f"warning: {schedule.name}: {text}")
    locations = list(dict.fromkeys([*(schedule.location for schedule in schedules), *[location] * options.prune]))
    existing = [schedule for each in locations for schedule in schedule_calls.list_schedules(each)]
    changes = plan(schedules, existing, datetime.now(UTC))
    if options.prune:
        changes += prune(schedules, existing, locations)
    for change in changes if options.verb == "plan" else ():
        print(f"{change.verb} {change.name} in {change.location.region}: {change.reason}")
    if options.verb == "apply":
        schedule_calls.apply(changes)
    if not changes:
        print("up to date: all schedules match the file")
