"""`python -m pipelines schedule`: manages the recurring runs of `schedules.yaml`."""

import argparse
from datetime import UTC, datetime

from pipelines.calls import calls
from pipelines.schedules import calls as schedule_calls
from pipelines.schedules.file import DEFAULT_FILE, read_schedules
from pipelines.schedules.plan import Change, plan, prune
from pipelines.vertex import Location, add_location, location_from

_VERBS = {
    "plan": "show what apply would do",
    "apply": "make the schedules of the service match the file",
    "list": "show the schedules of a region",
    "pause": "start no more runs of a schedule",
    "resume": "resume a paused schedule",
    "delete": "delete a schedule; its runs continue",
    "run-now": "start a run of a schedule now, without changing the schedule",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of `schedule`."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, text in _VERBS.items():
        added = verbs.add_parser(verb, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if verb in ("plan", "apply"):
            added.add_argument(
                "file", metavar="FILE", nargs="?", default=DEFAULT_FILE, help="schedule file (%(default)s)"
            )
            added.add_argument(
                "--prune", action="store_true", help="delete managed schedules that are no longer in the file"
            )
        elif verb != "list":
            added.add_argument("name", metavar="NAME", help="display name or number of the schedule")
        if verb == "resume":
            added.add_argument("--catch-up", action="store_true", help="start the runs missed while it was paused")
        add_location(added)


def run(options: argparse.Namespace) -> int:
    """Run one verb.

    Returns:
        The exit code 0.
    """
    location = location_from(options)
    match options.verb:
        case "plan" | "apply":
            _match_file(options, location)
        case "list":
            for schedule in schedule_calls.list_schedules(location):
                next_run = schedule.get("nextRunTime", "-")
                print(f"{schedule['displayName']}  {schedule['state']}  {schedule['cron']}  next {next_run}")
        case "resume":
            found = schedule_calls.find(location, options.name)
            with calls(location):
                schedule_calls.resume(location, found["name"], catch_up=options.catch_up)
            print(f"resume {found['displayName']}")
        case "run-now":
            print(schedule_calls.run_now(location, schedule_calls.find(location, options.name)))
        case verb:
            found = schedule_calls.find(location, options.name)
            change = Change(verb=verb, name=found["displayName"], location=location, resource=found["name"])
            schedule_calls.apply([change])
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
