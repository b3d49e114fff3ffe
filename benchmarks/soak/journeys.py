"""Trains over several machines, with shortages, preemptions, kills and cancels.

`python -m benchmarks.soak.journeys --num-faults 60`

The seed decides what happens to a journey, and so how each of its jobs must end, before it starts. All as written: the
same weights as an undisturbed training, one job at a time, and no process left. Prints a line per journey.
"""

import sys

from benchmarks.soak.record import Fault, Soak, options
from tests.support.journeys import Journeys, Plan


def main() -> int:
    """Run journeys; return 1 if one of them ended otherwise than its plan says."""
    given = options("journeys", __doc__, num_faults=60, smoke_values={"num_faults": 1})
    soak = Soak("journeys", given)
    journeys = Journeys(soak.folder / "journeys")

    def travel(number: int) -> list[Fault]:
        plan, name = Plan.of(f"{given.seed}-{number}"), f"journey-{number}"
        print(f"  {plan}", flush=True)
        try:
            journeys.check(name, plan)
        except Exception:
            soak.keep(journeys.folder / name, number)
            raise
        # A journey counts once, whatever happens to it.
        return [Fault(plan.disturbance or "shortages", plan.whys[-1])]

    return soak.run(travel)


if __name__ == "__main__":
    sys.exit(main())
