"""Objects of `state` are taken apart and put back in place; what cannot be saved is refused by its path."""

import itertools
import json
import random
import re
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import exact_resume
from exact_resume import InputError, Stream, saved, state
from exact_resume.state import State

SOAK = [pytest.mark.slow, pytest.mark.soak]
NUM_STEPS = 60


class Scheduler:
    """As PyTorch's objects."""

    def __init__(self) -> None:
        self.state: Any = {"step": 0, 3: [1.5, None, (True, "a")], "moments": np.zeros((2, 2), np.float32)}

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, found: Any) -> None:
        self.state = found


class Variable:
    """As a variable of Keras or TensorFlow."""

    def __init__(self, value: Any) -> None:
        self.value = np.array(value)

    def numpy(self) -> Any:
        return self.value

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.value

    def assign(self, value: Any) -> None:
        self.value = np.array(value)


class Model:
    def __init__(self, *variables: Variable) -> None:
        self.variables = list(variables)


def through_json(tree: Any) -> Any:
    return json.loads(json.dumps(tree))


def test_every_kind_of_object_comes_back_in_place() -> None:
    array = np.arange(3.0)
    nested: Any = {"a": [np.ones(2), {"b": 1}], "gone": 2, "text": "x"}
    inner = nested["a"][0]
    scheduler, generator, old = Scheduler(), np.random.default_rng(1), np.random.RandomState(1)
    variable, model = Variable(2.0), Model(Variable([1.0, 2.0]), Variable(np.float32(3)))
    words = ["a"]
    special = saved(
        words, save=lambda each: {"words": each, "bytes": b"\x00\xff"}, load=lambda got: words.extend(got["words"])
    )
    objects = {
        "array": array, "nested": nested, "scheduler": scheduler, "generator": generator, "old": old,
        "variable": variable, "model": model, "special": special,
    }  # fmt: skip
    kept = State(objects)
    tree, arrays = kept.take()
    draws = generator.random(), old.random()
    array += 1
    inner += 5
    nested["a"][1]["b"] = 9
    nested["a"].append(3)
    nested["new"] = 1
    del nested["gone"]
    scheduler.state = None
    variable.assign(7.0)
    model.variables[0].assign([0.0, 0.0])
    kept.put(through_json(tree), arrays)
    assert array.tolist() == [0, 1, 2]
    assert nested["a"][0] is inner
    assert (inner.tolist(), nested) == ([1, 1], {"a": [inner, {"b": 1}], "text": "x", "gone": 2})
    assert scheduler.state[3] == [1.5, None, (True, "a")]
    assert scheduler.state["moments"].dtype == np.float32
    assert (generator.random(), old.random()) == draws
    assert (float(variable.value), model.variables[0].value.tolist()) == (2.0, [1, 2])
    assert words == ["a", "a"]


class Moments(NamedTuple):
    """As a state of optax."""

    count: Any
    inner: Any


def test_named_tuples_come_back_with_their_class() -> None:
    held = {"state": (Moments(np.zeros(2), Moments(1, ())), 2.0), "kept": np.ones(1)}
    kept = State({"held": held})
    assert kept.shapes == {"held.state.0.0": "(2,) float64", "held.kept": "(1,) float64"}
    tree, arrays = kept.take()
    held["state"] = ()
    kept.put(through_json(tree), arrays)
    found = held["state"][0]
    assert (type(found), found.count.tolist(), found.inner, held["state"][1]) == (Moments, [0, 0], Moments(1, ()), 2.0)


@pytest.mark.parametrize("name", ["State", "sys", "Missing", "Moments.count", "Scheduler.load_state_dict"])
def test_only_a_class_of_named_tuples_is_ever_made(name: str) -> None:
    with pytest.raises(InputError, match=r"has a NamedTuple .* of 2 fields, which this program does not have; import"):
        state.read({"named": [__name__, name, [1, 2]]}, [])


def test_a_named_tuple_that_no_module_has_is_refused() -> None:
    class Local(NamedTuple):
        count: int

    with pytest.raises(InputError, match=r"state 'a\.0' is a .*<locals>\.Local, which no module has"):
        State({"a": [Local(1)]})


def test_arrays_and_keys_of_jax_come_back() -> None:
    jax = pytest.importorskip("jax")
    optax = pytest.importorskip("optax")
    parameters = {"w": jax.numpy.ones((2, 3), jax.numpy.bfloat16), "b": jax.numpy.zeros(3)}
    key = jax.random.split(jax.random.key(1, impl="rbg"), 2)
    held = {"parameters": parameters, "optimizer": optax.adam(0.1).init(parameters), "key": key}
    before = {**held}
    kept = State({"held": held})
    tree, arrays = kept.take()
    held.clear()
    kept.put(through_json(tree), arrays)
    assert jax.tree.structure(held) == jax.tree.structure(before)
    for found, expected in zip(*map(jax.tree.leaves, (held, before)), strict=True):
        assert isinstance(found, jax.Array)
        assert found.dtype == expected.dtype
        assert (found == expected).all()


@pytest.mark.parametrize("value", [np.float32(1.5), np.int64(3), np.bool_(True), np.float64(0.1), None, 2.5])
def test_scalars_come_back_as_scalars(value: Any) -> None:
    held = {"best": value, "history": [value]}
    kept = State({"held": held})
    tree, arrays = kept.take()
    held["history"].append(value)
    kept.put(through_json(tree), arrays)
    assert held == {"best": value, "history": [value]}
    assert not isinstance(held["best"], np.ndarray)


def test_what_is_taken_is_a_copy() -> None:
    array = np.zeros(3)
    _, arrays = State({"a": array, "b": [array]}).take()
    array += 1
    assert [each.tolist() for each in arrays] == [[0, 0, 0]] * 2


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn"])
def test_numbers_of_ml_dtypes_keep_their_bits(kind: str, tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(-4, 4).astype(getattr(ml_dtypes, kind))
    kept = State({"a": array})
    tree, arrays = kept.take()
    np.savez(tmp_path / "a.npz", allow_pickle=False, **{"v": arrays[0]})
    before, array[...] = array.copy(), 0
    kept.put(tree, [np.load(tmp_path / "a.npz", allow_pickle=False)["v"]])
    assert array.tobytes() == before.tobytes()
    assert kept.shapes == {"a": f"(8,) {kind}"}


def test_objects_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    kept = State({"model": model, "optimizer": optimizer})
    model(torch.ones(1, 3, dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
    tree, arrays = kept.take()
    before = [each.detach().clone() for each in model.parameters()]
    optimizer.step()
    kept.put(through_json(tree), arrays)
    assert all(map(torch.equal, before, model.parameters()))


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.slow
@pytest.mark.soak
def test_tensors_are_filled_in_place(torch: Any) -> None:
    """The program may have other names for them."""
    tensor, parameter, inner = torch.arange(3.0), torch.nn.Parameter(torch.ones(2)), torch.zeros((), dtype=torch.int8)
    kept = State({"tensor": tensor, "parameter": parameter, "nested": {"inner": [inner]}})
    assert kept.shapes == {
        "tensor": "(3,) torch.float32", "parameter": "(2,) torch.float32", "nested.inner.0": "() torch.int8"
    }  # fmt: skip
    tree, arrays = kept.take()
    with torch.no_grad():
        for each in (tensor, parameter, inner):
            each += 5
    kept.put(through_json(tree), arrays)
    assert (tensor.tolist(), parameter.tolist(), inner.item()) == ([0, 1, 2], [1, 1], 0)
    assert parameter.requires_grad


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    "kind", "bfloat16 float16 float64 float8_e4m3fn float8_e5m2 bool uint8 int8 uint16 int64 complex64".split()
)
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_tensors_of_every_type_keep_their_bits(torch: Any, kind: str, shape: tuple[int, ...]) -> None:
    tensor = torch.randint(0, 3, shape).to(getattr(torch, kind))
    tree, arrays = State({"a": {"b": tensor}}).take()
    (found,) = [state.read(through_json(node), arrays) for node in tree.values()]
    assert (found["b"].dtype, found["b"].shape) == (tensor.dtype, tensor.shape)
    assert found["b"].tolist() == tensor.tolist()


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda torch: {"weight": torch.eye(3).to_sparse()}, "SparseTensor"),
        (lambda torch: torch.nn.LazyLinear(3), "Call `forward` with a dummy batch"),
        (lambda torch: torch.nn.Linear(3, 3, device="meta"), "no data"),
    ],
)
def test_a_tensor_that_numpy_cannot_hold_is_refused(torch: Any, make: Any, reason: str) -> None:
    with pytest.raises(
        InputError, match=rf"state 'a\.weight' is a tensor .* hold \(.*{reason}.*; use exact_resume\.saved"
    ):
        State({"a": make(torch)})


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "Adagrad", "RMSprop", "Rprop", "SGD"])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_an_optimizer_that_has_not_stepped_is_restored(torch: Any, name: str, kind: str) -> None:
    """PyTorch itself would convert the factor of NAdam to the type of the weights."""

    def make() -> tuple[Any, Any]:
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2).to(getattr(torch, kind))
        return model, getattr(torch.optim, name)(model.parameters(), lr=0.1)

    def train(model: Any, optimizer: Any) -> Any:
        for number in range(4):
            optimizer.zero_grad()
            model(torch.full((2, 3), number, dtype=model.weight.dtype)).square().sum().backward()
            optimizer.step()
        tree, arrays = State({"model": model, "optimizer": optimizer}).take()
        return tree, [each.tobytes() for each in arrays]

    first = make()
    train(*first)
    tree, arrays = State(dict(zip(("model", "optimizer"), first, strict=True))).take()
    second = make()
    kept = State(dict(zip(("model", "optimizer"), second, strict=True)))
    kept.put(through_json(tree), arrays)
    assert train(*first) == train(*second)


SCHEDULERS = {
    "one cycle": lambda of, optimizer: of.OneCycleLR(optimizer, 0.1, 20),
    "cosine": lambda of, optimizer: of.CosineAnnealingWarmRestarts(optimizer, 4),
    "plateau": lambda of, optimizer: of.ReduceLROnPlateau(optimizer, patience=1),
    "warm-up": lambda of, optimizer: of.SequentialLR(
        optimizer, [of.LinearLR(optimizer), of.MultiStepLR(optimizer, [2, 4])], [6]
    ),
}


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("num_steps", [0, 4])
def test_a_scheduler_continues(torch: Any, name: str, num_steps: int) -> None:
    def make() -> tuple[Any, Any]:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
        return optimizer, SCHEDULERS[name](torch.optim.lr_scheduler, optimizer)

    def rates(optimizer: Any, scheduler: Any, count: int) -> list[float]:
        found = []
        for _ in range(count):
            optimizer.step()
            scheduler.step(*[1.0] * (name == "plateau"))
            found.append(optimizer.param_groups[0]["lr"])
        return found

    first, second = make(), make()
    rates(*first, num_steps)
    tree, arrays = State(dict(zip("ab", first, strict=True))).take()
    State(dict(zip("ab", second, strict=True))).put(through_json(tree), arrays)
    assert rates(*first, 12) == rates(*second, 12)


PROGRAM_HEAD = """
import hashlib, itertools, os, random, sys
import numpy as np
import exact_resume

def note(step, *examples):
    with open(os.environ["EXAMPLES_SEEN"], "a") as file:
        print(step, *examples, file=file)
"""
STREAM = """
def examples():
    source = random.Random(7)
    for number in itertools.count():
        yield number + source.random()

weights, stream = np.zeros(3), exact_resume.Stream(examples())
with exact_resume.run(sys.argv[1], steps=60, state={"weights": weights, "stream": stream}, code=[__file__],
                      save_every_steps=7) as run:
    for step in run:
        taken = [next(stream) for _ in range(step % 3 + 1)]
        note(step, *taken)
        weights += np.sum(taken) * np.random.random(3)
print(hashlib.sha256(weights.tobytes()).hexdigest())
"""
TORCH = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, number):
        return torch.tensor(number), torch.sin(torch.arange(8.0) * number)

nn = torch.nn
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(), nn.Linear(16, 1))
half = torch.nn.Linear(8, 1).to(torch.bfloat16)
average = torch.optim.swa_utils.AveragedModel(model)
optimizer, other = torch.optim.Adam(model.parameters(), lr=0.01), torch.optim.NAdam(half.parameters(), lr=0.01)
rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, 60)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(other, patience=2)
scaler, noise, best = torch.amp.GradScaler("cpu", growth_interval=9), torch.Generator(), torch.full((), torch.inf)
sampler = exact_resume.Sampler(num_examples=100, global_batch_size=16, seed=3, num_micro_batches=2)
state = dict(model=model, half=half, average=average, optimizer=optimizer, other=other, rate=rate, plateau=plateau,
             scaler=scaler, noise=noise, best={"loss": best})
with exact_resume.run(sys.argv[1], steps=60, state=state, sampler=sampler, code=[__file__], save_every_steps=7) as run:
    batches = sampler.batches(start=run.step, stop=run.num_steps, worker=run)
    loader = iter(torch.utils.data.DataLoader(
        Data(), batch_sampler=batches, num_workers=2, prefetch_factor=3, generator=torch.Generator()))
    for step in run:
        optimizer.zero_grad(), other.zero_grad()
        seen, losses = [], 0.0
        for _ in range(2):
            numbers, inputs = next(loader)
            seen += numbers.tolist()
            inputs = inputs + 0.1 * torch.randn(inputs.shape, generator=noise)
            loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
            loss = loss + half(inputs.to(torch.bfloat16)).float().square().mean()
            scaler.scale(loss).backward()
            losses += loss.item()
        assert seen == sampler.indices(step).tolist()
        note(step, *seen)
        scaler.step(optimizer), scaler.step(other), scaler.update()
        rate.step(), plateau.step(losses), average.update_parameters(model)
        best.copy_(torch.minimum(best, torch.tensor(losses)))
digest = hashlib.sha256(repr((best.item(), torch.rand(3).tolist(), torch.rand(3, generator=noise).tolist())).encode())
for tensor in [*model.state_dict().values(), *half.parameters(), *average.state_dict().values()]:
    digest.update(tensor.detach().float().numpy().tobytes())
digest.update(repr([each.state_dict() for each in (optimizer, other, rate, plateau, scaler)]).encode())
print(digest.hexdigest())
"""


@pytest.mark.parametrize(
    ("program", "module"),
    [
        pytest.param(STREAM, "numpy", marks=pytest.mark.slow, id="stream"),
        pytest.param(TORCH, "torch", marks=SOAK, id="torch"),
    ],
)
def test_an_interrupted_program_ends_the_same_and_repeats_or_loses_no_example(
    program: str, module: str, tmp_path: Path
) -> None:
    pytest.importorskip(module)
    path, script = tmp_path / "train.py", Path(__file__).with_name("disturbed.py")
    path.write_text(f"import numpy\nnumpy.random.seed(1)\n{PROGRAM_HEAD}{program}")
    # SIGTERM saves the step; after SIGKILL, the steps since the last save are repeated.
    faults = ["__next__:5:9", "__next__:23:15", "__next__:24:9", "__next__:44:15", "__next__:59:9"]
    words = [sys.executable, str(script), str(path), module, str(tmp_path), *faults]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert re.findall(r"^exit (.*)$", done.stdout, re.M) == ["0", "-9", "143", "-9", "143", "-9", "0"], done.stderr
    whole, disturbed = re.findall(r"^[0-9a-f]{64}$", done.stdout, re.M)
    assert disturbed == whole
    first, last = ((tmp_path / f"{name}.seen").read_text().splitlines() for name in ("whole", "disturbed"))
    assert len(first) == NUM_STEPS
    # A step that was repeated had the same examples.
    assert [*dict.fromkeys(sorted(last))] == sorted(first)
    assert done.stderr.count(" items of a stream in ") == (4 if module == "numpy" else 0)
    if module == "numpy":
        source = random.Random(7)
        items = [str(number + source.random()) for number in range(2 * NUM_STEPS)]
        assert [item for line in first for item in line.split()[1:]] == items


@pytest.mark.parametrize(("num_taken", "length"), [(0, 3), (5, 9)])
def test_a_stream_that_cannot_be_skipped_is_refused(num_taken: int, length: int) -> None:
    """It is too short, or the program has taken from it already."""

    def take(count: int, length: int) -> State:
        stream = Stream(range(length))
        assert list(itertools.islice(stream, count)) == list(range(count))
        return State({"stream": stream})

    tree, arrays = take(4, 9).take()
    with pytest.raises(InputError, match=rf"the stream is at its item {num_taken or 3}, the checkpoint at 4; give the"):
        take(num_taken, length).put(tree, arrays)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "state 'a' is a str, which has no state to save"),
        (3, "state 'a' is a int"),
        (np.float64(3), "state 'a' is a float64"),
        (iter([]), "state 'a' is a list_iterator"),
        ([{"b": object()}], "state 'a.0.b' is a object; expected numbers"),
        ({"b": {1, 2}}, "state 'a.b' is a set; expected numbers"),
        ({(1, 2): 3}, r"state 'a' has the key \(1, 2\); expected a text or a whole number"),
        (np.array([object()]), "state 'a' is an array of Python objects, which only pickle could save"),
        (Model(), "state 'a' is not built yet"),
    ],
)
def test_what_cannot_be_saved_is_refused_by_its_path(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        State({"a": value})


def test_an_ordered_dict_comes_back_in_order() -> None:
    scheduler = Scheduler()
    scheduler.state = OrderedDict(b=1, a=np.ones(1))
    kept = State({"s": scheduler})
    tree, arrays = kept.take()
    kept.put(through_json(tree), arrays)
    assert list(scheduler.state) == ["b", "a"]


def test_the_state_of_global_generators_comes_back() -> None:
    import random

    arrays: list[Any] = []
    tree = state.write(state.generators(), "generators", arrays)
    draws = random.random(), random.gauss(0, 1), np.random.random()
    state.set_generators(state.read(through_json(tree), arrays))
    assert (random.random(), random.gauss(0, 1), np.random.random()) == draws


def test_the_import_brings_no_framework() -> None:
    program = (
        "import sys, exact_resume; exact_resume.run; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    found = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True).stdout
    assert {"torch", "tensorflow", "keras", "jax", "google", "requests"} & set(found.split()) <= {"google"}


def test_all_that_the_package_exports_is_there() -> None:
    assert all(hasattr(exact_resume, name) for name in exact_resume.__all__)
