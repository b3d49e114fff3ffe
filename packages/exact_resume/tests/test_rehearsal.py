"""The rehearsal finds loops that do not resume exactly before their hours are spent, and accuses no right one."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from exact_resume import InputError
from exact_resume.__main__ import main
from exact_resume.rehearsal import Tracer
from vertex_testing.programs import TRAININGS

PAGES = Path(__file__).parents[1]
HEAD = """
import pickle, queue, random, sys, threading, time
import numpy as np
import exact_resume

random.seed(0), np.random.seed(0)
data = np.random.default_rng(0).normal(size=(400, 4))
target = (data.sum(axis=1) > 0).astype(int)
sampler = exact_resume.Sampler(num_examples=400, global_batch_size=8, seed=0)
weights = np.zeros(4)

def run(state, **options):
    return exact_resume.run(sys.argv[1], steps=60, state=state, sampler=sampler, code=[__file__], **options)

def gradient(rows):
    return data[rows].T @ (data[rows] @ weights - target[rows]) / len(rows)
"""
FINISH = "    open(sys.argv[1] + '.after', 'w').close()\n    run.result()\n"
WRONG = {
    # name: (what is different, first after which step, program)
    "moments of Adam": ("state 'model.0'", 4, """
from sklearn.neural_network import MLPClassifier
model = MLPClassifier([5], random_state=0, learning_rate_init=0.01)
model.partial_fit(data[:8], target[:8], classes=[0, 1])
with run({"model": [*model.coefs_, *model.intercepts_]}) as run:
    for step in run:
        rows = sampler.shard(step, run)
        model.partial_fit(data[rows], target[rows], classes=[0, 1])
"""),
    "learning rate in a local variable": ("state 'weights'", 4, """
rate = 0.5
with run({"weights": weights}) as run:
    for step in run:
        weights -= rate * gradient(sampler.shard(step, run))
        rate *= 0.9
"""),
    "omitted generator": ("logged 'noise'", 4, """
noise = np.random.default_rng(1)
with run({"weights": weights}) as run:
    for step in run:
        drawn = noise.normal()
        weights -= gradient(sampler.shard(step, run)) + 0.1 * drawn
        run.log(noise=drawn)
"""),
    "omitted torch.Generator": ("state 'weights'", 4, """
import torch
noise, weights = torch.Generator().manual_seed(1), torch.zeros(4)
with run({"weights": weights}) as run:
    for step in run:
        weights += torch.randn(4, generator=noise)
"""),
    "prefetch thread with a saved generator": ("state 'weights'", 4, """
noise, ready = np.random.default_rng(1), queue.Queue(5)

def prefetch():
    while True:
        ready.put(noise.normal(size=4))

with run({"weights": weights, "noise": noise}) as run:
    threading.Thread(target=prefetch, daemon=True).start()
    for step in run:
        weights += ready.get()
        time.sleep(0.02)
"""),
    "stream with the global numbers of the loop": ("state 'weights'", 4, """
def items():
    shuffled = [*range(4)]
    for number in range(4, 400):
        at = np.random.randint(4)
        yield shuffled[at]
        shuffled[at] = number

stream = exact_resume.Stream(items())
with run({"weights": weights, "stream": stream}) as run:
    for step in run:
        row = next(stream)
        weights -= 0.1 * gradient([row]) * np.random.random()
"""),
    "init_model of CatBoost": ("logged 'loss'", 4, """
from catboost import CatBoostClassifier
held = {"model": None}

def save(it):
    if not it["model"]:
        return b""
    it["model"].save_model('own.cbm')
    return open('own.cbm', "rb").read()

def load(content):
    if content:
        held["model"] = CatBoostClassifier().load_model(blob=content)

with run({"model": exact_resume.saved(held, save=save, load=load)}) as run:
    for step in run:
        model = CatBoostClassifier(iterations=2, thread_count=1, verbose=False, allow_writing_files=False)
        held["model"] = model.fit(data, target, init_model=held["model"])
        run.log(loss=held["model"].predict_proba(data)[:, 1].sum())
"""),
    "Birch by pickle": ("logged 'sum'", None, """
from sklearn.cluster import Birch
held = {"model": Birch(threshold=0.3, branching_factor=3, n_clusters=None)}
state = exact_resume.saved(
    held, save=lambda it: pickle.dumps(it["model"]), load=lambda content: held.update(model=pickle.loads(content))
)
with run({"model": state}) as run:
    for step in run:
        held["model"].partial_fit(data[sampler.shard(step, run)])
        run.log(sum=np.abs(held["model"].subcluster_centers_).sum())
"""),
    "micro-batches as steps": ("state 'weights'", 4, """
total = np.zeros(4)
with run({"weights": weights}) as run:
    for step in run:
        total += gradient(sampler.shard(step, run))
        if step % 2:
            weights -= 0.1 * total
            total[...] = 0
"""),
}  # fmt: skip
(BY_PICKLE,) = re.findall(
    r"^```python\n(.*?)^```$", (PAGES / "docs" / "state.md").read_text(encoding="utf-8"), re.M | re.S
)
RIGHT = {
    "a stream with numbers of its own, and a history": """
def items():
    own, shuffled = random.Random(1), [*range(4)]
    for number in range(4, 400):
        at = own.randrange(4)
        yield shuffled[at]
        shuffled[at] = number

stream, history = exact_resume.Stream(items()), {"losses": [], "best": None}
with run({"weights": weights, "stream": stream, "history": history}) as run:
    for step, row in zip(run, stream):
        weights -= 0.1 * gradient([row]) * np.random.random()
        history["losses"].append(float(weights @ weights))
        history["best"] = min(history["losses"])
        run.log(loss=history["losses"][-1], rate=float("nan"))
""",
    "micro-batches with their sum": """
total = np.zeros(4)
with run({"weights": weights, "total": total}) as run:
    for step in run:
        total += gradient(sampler.shard(step, run))
        if step % 2:
            weights -= 0.1 * total
            total[...] = 0
""",
    "MLPClassifier by pickle, as the page on state has it": f"""
from sklearn.neural_network import MLPClassifier
{BY_PICKLE}
with run({{"model": state}}) as run:
    for step in run:
        rows = sampler.shard(step, run)
        held["model"].partial_fit(data[rows], target[rows], classes=[0, 1])
        run.log(loss=held["model"].loss_)
""",
    "a clock, and random numbers without a seed that nothing uses": """
np.random.seed(None)
stats = {"seconds": 0.0}
with run({"weights": weights, "stats": stats, "unused": np.random.RandomState()}) as run:
    for step in run:
        weights -= 0.1 * gradient(sampler.shard(step, run))
        stats["seconds"] = time.time()
        run.log(clock=time.time(), loss=weights @ weights)
""",
    "a run that ends early": """
with run({"weights": weights}) as run:
    for step in run:
        weights -= 0.1 * gradient(sampler.shard(step, run))
        if step == 4:
            run.finish("enough")
            break
""",
}
REFUSED = {
    # name: (what is refused, the member of state that does not train)
    "a set": ("state 'other' is a set", "{1, 2}"),
    "a number that is no member of a dict": ("state 'other' is a float", "0.5"),
    "an iterator": ("state 'other' is a list_iterator", "iter([1])"),
    "a dict with a tuple as a key": ("state 'other' has the key (1, 2)", "{(1, 2): 3}"),
    "an array of Python objects": ("state 'other' is an array of Python objects", "np.array([object()])"),
    "a deque that `save` returns": (
        "state 'other' is a deque", "exact_resume.saved([], save=__import__('collections').deque, load=print)"
    ),
    "a complex number that `save` returns": (
        "state 'other.rate' is a complex", "exact_resume.saved([], save=lambda it: {'rate': 1j}, load=print)"
    ),
}  # fmt: skip


def rehearse(program: Path, tmp_path: Path) -> tuple[int, str]:
    """Rehearse in a folder of its own; return exit code and output."""
    words = ["-m", "exact_resume", "rehearse", "--", sys.executable, program, tmp_path / "run"]
    process = TRAININGS.start(words, cwd=tmp_path, stderr=subprocess.PIPE)
    stdout, stderr = process.communicate(timeout=600)
    # Neither the folder of the run nor a file that the end of the program writes.
    assert not list(tmp_path.glob("run*"))
    return process.wait(), stdout + stderr


def by_speed(loops: Iterable[str]) -> list[Any]:
    """Importing scikit-learn ten times makes a case slow."""
    slow = ("moments of Adam", "Birch by pickle", "MLPClassifier by pickle, as the page on state has it")
    return [pytest.param(name, marks=[pytest.mark.slow] if name in slow else []) for name in loops]


@pytest.mark.parametrize("name", by_speed(WRONG))
def test_a_loop_that_does_not_resume_is_found_and_what_differs_is_named(name: str, tmp_path: Path) -> None:
    what, step, program = WRONG[name]
    for module in ("torch", "catboost"):
        if f"import {module}" in program or f"from {module}" in program:
            pytest.importorskip(module)
    (tmp_path / "train.py").write_text(HEAD + program + FINISH)
    code, output = rehearse(tmp_path / "train.py", tmp_path)
    assert code == 1, output
    (found,) = re.findall(
        rf"different: {re.escape(what)}.* first after step (\d+), with a stop after step (\d)", output
    )
    assert step in (None, int(found[0]))
    assert int(found[1]) in (3, 4, 5)


@pytest.mark.parametrize("name", by_speed(RIGHT))
def test_a_right_loop_is_accused_of_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEAD + RIGHT[name] + FINISH)
    code, output = rehearse(tmp_path / "train.py", tmp_path)
    assert code == 0, output
    assert "different: " not in output
    assert ("perhaps only another form: state 'model'" in output) == ("pickle" in name)
    assert ("noise: logged 'clock'" in output) == ("clock" in name)


@pytest.mark.parametrize("name", REFUSED)
def test_a_loop_whose_state_cannot_be_saved_is_refused_before_its_first_step(name: str, tmp_path: Path) -> None:
    what, value = REFUSED[name]
    loop = f"with run({{'weights': weights, 'other': {value}}}) as run:\n    for step in run:\n        weights += 1\n"
    (tmp_path / "train.py").write_text(HEAD + loop + FINISH)
    code, output = rehearse(tmp_path / "train.py", tmp_path)
    assert (code, what in output, "after step 0" in output) == (1, True, True), output


def test_the_page_has_what_becomes_of_each_loop_here() -> None:
    page = (PAGES / "docs" / "rehearsal.md").read_text(encoding="utf-8")
    rows = [(name, f"found: {what}") for name, (what, *_) in WRONG.items()]
    rows += [(name, "exact") for name in RIGHT] + [(name, "refused before the first step") for name in REFUSED]
    assert re.findall(r"^\| (.*) \| (.*) \|$", page.partition("## Loops\n")[2], re.M)[1:] == rows


@pytest.mark.parametrize("name", ["README.md", "numpy_softmax.py"])
def test_the_documented_loops_are_accused_of_nothing(name: str, tmp_path: Path) -> None:
    text = (PAGES / name if name == "README.md" else PAGES / "examples" / name).read_text(encoding="utf-8")
    program = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S) if name == "README.md" else [text]
    (tmp_path / "train.py").write_text(program[0])
    code, output = rehearse(tmp_path / "train.py", tmp_path)
    assert code == 0, output
    if name == "README.md":
        command, shown = re.findall(r"^\$ python -m exact_resume rehearse -- (.*)\n(.*)$", text, re.M)[0]
        assert (command, shown) == ("python line.py RUN", output.strip())


@pytest.mark.parametrize(
    ("program", "code", "message"),
    [
        ("weights += np.random.default_rng().random(4)\nwith run({'w': weights}) as run:\n    [*run]\n", 2,
          "cannot be judged: arrays of numbers differ without a stop; seed"),
        ("with run({'w': weights}) as run:\n    for step in run: pass\n", 2, "no number that changes is compared"),
        ("", 2, "ended without a step of exact_resume.run"),
        ("with run({'w': weights}) as run:\n    for step in run:\n        weights += 1\n        1 / (step - 2)\n", 1,
         "the program failed with 1 after step 2, and was to stop after 10: ZeroDivisionError"),
        ("with run({'w': weights}) as run:\n    if run.step: raise KeyError\n    [*run]\n", 1,
         "failed with 1 after step 3, and was to stop after 4: KeyError"),
        ("with exact_resume.run('a', steps=1, state={'w': weights}) as run:\n    for step in run: weights += 1\n", 2,
         "the program ends after 1 step"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_or_fails_says_why(program: str, code: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEAD + program)
    found, output = rehearse(tmp_path / "train.py", tmp_path)
    assert (found, message in output) == (code, True), output


@pytest.mark.parametrize(
    ("before", "at_exit", "shown"),
    [
        ("", "print('epoch 1')", "ZeroDivisionError: division by zero"),
        # tqdm closes its bar after the traceback, which begins on the line of the bar.
        ("draw('20%')", "draw('30%\\n')", "ZeroDivisionError: division by zero"),
        ("draw('20%')", "draw('30%\\r\\n')", "ZeroDivisionError: division by zero"),
        ("draw('20%')", "print(file=sys.stderr), draw('30%\\x1b[A')", "ZeroDivisionError: division by zero"),
        ("print('error: no images\\r', file=sys.stderr); draw('20%'); sys.exit(1)", "", "error: no images"),
        ("draw('20%'); draw('error: no images'); sys.exit(1)", "", "error: no images"),
        ("sys.exit(1)", "", ""),
    ],
)
def test_the_last_line_of_a_failed_program_is_its_error_and_no_progress_bar(
    before: str, at_exit: str, shown: str, tmp_path: Path
) -> None:
    draw = "draw = lambda text: sys.stderr.write(f'\\r{text}')"
    program = f"import atexit, sys\n{draw}\natexit.register(lambda: [{at_exit}])\n{before}\n"
    (tmp_path / "train.py").write_text(
        f"{HEAD}{program}with run({{'w': weights}}) as run:\n    for step in run: 1 / (step - 2)\n"
    )
    code, output = rehearse(tmp_path / "train.py", tmp_path)
    assert (code, output.strip().rpartition("after 10:")[2].strip()) == (1, shown), output


@pytest.mark.parametrize("name", ["learning rate in a local variable", "micro-batches with their sum"])
def test_a_run_that_rehearses_itself_trains_only_if_it_resumes(name: str, tmp_path: Path) -> None:
    program = WRONG[name][2] if name in WRONG else RIGHT[name]
    text = HEAD + program.replace("with run({", "with run(rehearse=True, state={") + FINISH
    (tmp_path / "train.py").write_text(text)
    words = [sys.executable, str(tmp_path / "train.py"), str(tmp_path / "run")]
    first = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": "0"})
    assert first.returncode == (name in WRONG), first.stderr
    assert (tmp_path / "run" / "result.json").exists() == (name in RIGHT)
    if name in RIGHT:
        # A run that has begun has been rehearsed.
        assert "resumes exactly" in first.stderr
        again = subprocess.run(words, capture_output=True, text=True)
        assert (again.returncode, "resumes exactly" in again.stderr) == (0, False)


@pytest.mark.parametrize("value", ["3", "x:/", "3:/missing"])
def test_a_variable_of_the_rehearsal_that_is_wrong_is_refused(value: str) -> None:
    with pytest.raises(InputError, match=r"EXACT_RESUME_REHEARSAL is .*; expected STEP:FOLDER and one worker"):
        Tracer.of({"EXACT_RESUME_REHEARSAL": value}, 1)


@pytest.mark.parametrize("words", [[], ["--"], ["python", "train.py"]])
def test_a_rehearsal_without_a_command_is_refused_with_one_to_paste(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rehearse", *words]) == 2
    error = capsys.readouterr().err
    assert error.endswith("python -m exact_resume rehearse -- python train.py\n")
    assert error.count("\n") == 1
