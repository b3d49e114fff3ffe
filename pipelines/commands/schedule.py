"""`python -m pipelines schedule`: recurring runs, as `schedules.yaml` has them."""

import argparse
from datetime import UTC, datetime

from pipelines.schedules import calls as schedule_calls
from pipelines.schedules.file import DEFAULT_FILE, Wanted, read_schedules
from pipelines.schedules.plan import Step, plan, prune
from pipelines.vertex import Place, add_place, calls, place_from

VERBS = {
    "plan": "show what apply would do",
    "apply": "make the schedules of the service those of the file",
    "list": "show the schedules of a region",
    "pause": "start no more runs of a schedule",
    "resume": "let a paused schedule go on",
    "delete": "delete a schedule; its runs go on",
    "run-now": "start a run of a schedule at once, beside it",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of `schedule`."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, text in VERBS.items():
        made = verbs.add_parser(verb, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if verb in ("plan", "apply"):
            made.add_argument("file", metavar="FILE", nargs="?", default=DEFAULT_FILE, help="schedules (%(default)s)")
            made.add_argument("--prune", action="store_true", help="delete schedules of ours that the file has not")
        elif verb != "list":
            made.add_argument("name", metavar="NAME", help="display name, or number, of the schedule")
        if verb == "resume":
            made.add_argument("--catch-up", action="store_true", help="first start the runs missed while it was paused")
        add_place(made)


def run(options: argparse.Namespace) -> int:
    """Do what the verb says; return 0."""
    place = place_from(options)
    match options.verb:
        case "plan" | "apply":
            _converge(options, place)
        case "list":
            for schedule in schedule_calls.present(place):
                following = schedule.get("nextRunTime", "-")
                print(f"{schedule['displayName']}  {schedule['state']}  {schedule['cron']}  next {following}")
        case "resume":
            found = schedule_calls.find(place, options.name)
            with calls(place):
                schedule_calls.resume(place, found["name"], catch_up=options.catch_up)
            print(f"resume {found['displayName']}")
        case "run-now":
            print(schedule_calls.run_now(place, schedule_calls.find(place, options.name)))
        case verb:
            found = schedule_calls.find(place, options.name)
            schedule_calls.take(
                [Step(verb=verb, name=found["displayName"], place=place, resource=found["name"])],
            )
    return 0


def _converge(options: argparse.Namespace, place: Place) -> None:
    wanted = read_schedules(options.file, project=place.project, region=place.region, endpoint=place.endpoint)
    for one in wanted:
        for text in one.warnings:
            print(f"warning: {one.name}: {text}")
    steps = _steps(wanted, place, should_prune=options.prune)
    for step in steps if options.verb == "plan" else ():
        print(f"{step.verb} {step.name} in {step.place.region}: {step.reason}")
    if options.verb == "apply":
        schedule_calls.take(steps)
    if not steps:
        print("nothing to do: the schedules are those of the file")


def _steps(wanted: list[Wanted], place: Place, *, should_prune: bool) -> list[Step]:
    places = list(dict.fromkeys([one.place for one in wanted] + ([place] if should_prune else [])))
    present = [schedule for each in places for schedule in schedule_calls.present(each)]
    steps = plan(wanted, present, datetime.now(UTC))
    return steps + (prune(wanted, present, places) if should_prune else [])
