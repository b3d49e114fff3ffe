"""Objects of `state` are taken apart and put back in place; what cannot be saved is refused by its path."""

import json
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exact_resume
from exact_resume import InputError, saved, state
from exact_resume.state import State


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
