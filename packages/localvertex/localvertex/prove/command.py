"""The command `prove`."""

import argparse
import shutil
import textwrap
from datetime import UTC, datetime
from pathlib import Path

from localvertex._base.json_text import encode
from localvertex._base.userinput import outputs, paths
from localvertex._base.userinput.errors import UserError
from localvertex.prove import numbers, report, reproducer, subject
from localvertex.prove.comparison import BAD
from localvertex.prove.faults import FaultKind
from localvertex.prove.prove import prove
from localvertex.runner.options import Options

PAGE = "prove.html"


def execute(options: argparse.Namespace, run_options: Options) -> int:
    """Prove; return 0 if every fault ended as an undisturbed run, 1 if one did not, 2 if one cannot be judged.

    Raises:
        UserError: The input is wrong, or the undisturbed runs cannot be judged.
    """
    if wrong := [name for name in options.fault if name not in [*FaultKind]]:
        raise UserError(f"--fault {wrong[0]!r}: expected {', '.join(FaultKind)}")
    outputs.check_folder("--work-dir", run_options.work_dir)
    file = options.json if isinstance(options.json, Path) else None
    if file:
        outputs.check_file("--json", file)
    if (given := options.reproducer) and given.exists() and (not given.is_dir() or any(given.iterdir())):
        raise UserError(f"--reproducer={paths.display(str(given))} is not empty; give a new folder")
    patterns = [numbers.pattern(text) for text in options.number]
    folder = run_options.work_dir.absolute() / "prove" / datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    proofs = []
    for number, each in enumerate(subject.read(options, run_options)):
        place = folder / f"job-{number + 1}"
        place.mkdir(parents=True)
        try:
            proof = prove(
                each,
                place,
                run_options,
                seed=options.seed,
                asked=list(map(FaultKind, options.fault)),
                patterns=patterns,
                report=lambda text: print(textwrap.fill(text, report.WIDTH), flush=True),
                show=lambda result: print("\n".join(report.lines(result)), flush=True),
            )
        except KeyboardInterrupt:
            shutil.rmtree(folder)
            print("interrupted: nothing was proved, and the runs so far are removed", flush=True)
            raise
        proofs.append(proof)
        for result in proof.results if options.reproducer else ():
            if result.verdict in BAD:
                target = options.reproducer / f"job-{number + 1}" / result.fault
                reproducer.write(target, each, result, place / "undisturbed-1")
                print(f"reproducer: {target}")
    contents = {folder / PAGE: report.page(proofs)}
    options.answer |= {"proofs": list(map(report.as_json, proofs)), "page": str(folder / PAGE)}
    if file:
        contents[file] = encode(options.answer["proofs"]) + b"\n"
    outputs.write(contents)
    print(f"curves: {folder / PAGE}", *map(report.summary, proofs), sep="\n")
    codes = {proof.exit_code for proof in proofs}
    return 1 if 1 in codes else max(codes)
