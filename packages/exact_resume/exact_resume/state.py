"""The state of a program: its objects are taken apart into arrays and JSON, and put back in place.

An object of `state` is, in this order: what `saved` made; an array, which is filled in place; a dict or list, whose
entries are replaced; an object with state_dict and load_state_dict (PyTorch), or with get_state and set_state; a NumPy
generator; an object whose `variables` can be assigned (Keras, TensorFlow). What they return may contain numbers, texts,
bytes, arrays, PyTorch's tensors, and dicts, lists and tuples of these. No framework is imported here, and nothing is
pickled.
"""

import dataclasses
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exact_resume.errors import InputError

_PLAIN = (bool, int, float, str, type(None))
_WAY_ON = "use exact_resume.saved(it, save=..., load=...)"
Arrays = list[npt.NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class _Saved:
    value: Any
    save: Callable[[Any], Any]
    load: Callable[[Any], object]


def saved(value: Any, *, save: Callable[[Any], Any], load: Callable[[Any], object]) -> Any:
    """Return an object for `state` with functions of its own, such as a model of XGBoost.

    Args:
        value: The object.
        save: Called with the object; returns bytes, arrays, numbers, texts, or dicts, lists and tuples of these.
        load: Called with what `save` returned.
    """
    return _Saved(value, save, load)


class State:
    """Named objects of a program."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        """Check what can be checked before the first step.

        Raises:
            InputError: An object cannot be saved, or has not been built; the message has its path.
        """
        self._objects = dict(objects)
        tree, arrays = self.take()
        self.shapes = {path: f"{arrays[at].shape} {kind}" for path, at, kind in _arrays_of(tree)}
        """Path of each array -> shape and type, for the identity of the run."""

    def take(self) -> tuple[Any, Arrays]:
        """Return the state now: JSON, and copies of the arrays that it counts."""
        arrays: Arrays = []
        return {name: write(_content(each, name), name, arrays) for name, each in self._objects.items()}, arrays

    def put(self, tree: Any, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Give all objects the state that `take` returned."""
        for name, each in self._objects.items():
            _put(each, read(tree[name], arrays))


def generators() -> dict[str, Any]:
    """Return the state of the global random generators of Python, NumPy and, if imported, PyTorch."""
    version, numbers, gauss = random.getstate()
    found = {"python": (version, np.array(numbers, np.uint32), gauss), "numpy": np.random.get_state()}
    if torch := sys.modules.get("torch"):
        found["torch"] = torch.get_rng_state()
        if torch.cuda.is_available():
            found["cuda"] = torch.cuda.get_rng_state_all()
    return found


def set_generators(states: Mapping[str, Any]) -> None:
    """Give the global random generators the state that `generators` returned.

    Raises:
        InputError: PyTorch had a state and is not imported now.
    """
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers.tolist()), gauss))
    np.random.set_state(states["numpy"])
    if "torch" in states:
        if not (torch := sys.modules.get("torch")):
            raise InputError("the checkpoint has a state of PyTorch's random generator; import torch before the run")
        torch.set_rng_state(states["torch"])
        if "cuda" in states:
            torch.cuda.set_rng_state_all(states["cuda"])


def _arrays_of(node: Any, path: str = "") -> Iterator[tuple[str, int, str]]:
    """Yield path, number and type of each array."""
    if isinstance(node, dict) and path:
        ((kind, value),) = node.items()
        if kind in ("array", "tensor"):
            yield path, value["at"], value["type"]
        elif kind != "bytes":
            for key, child in value if kind == "dict" else enumerate(value):
                yield from _arrays_of(child, f"{path}.{key}")
    elif isinstance(node, dict):
        for name, child in node.items():
            yield from _arrays_of(child, name)


def _content(value: Any, path: str) -> Any:
    """Return the state of an object, as containers of arrays and plain values."""
    if isinstance(value, _Saved):
        return value.save(value.value)
    if isinstance(value, np.ndarray | dict | list):
        return value
    if _has(value, "state_dict", "load_state_dict"):
        return value.state_dict()
    if _has(value, "get_state", "set_state"):
        return value.get_state()
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    variables = _variables(value)
    if variables is None:
        raise InputError(
            f"state {path!r} is a {type(value).__name__}, which has no state to save; give arrays, a dict or list of"
            f" them or an object with state_dict and load_state_dict, or {_WAY_ON}"
        )
    # An optimizer of Keras has two variables before it knows those of the model.
    if not variables or getattr(value, "built", True) is False:
        raise InputError(f"state {path!r} is not built yet: {_how_to_build(value)}")
    return [np.asarray(each) for each in variables]


def _how_to_build(value: Any) -> str:
    if hasattr(value, "apply_gradients"):
        return "call optimizer.build(model.trainable_variables) before the run"
    return "call it with a batch, or give it its input shape, before the run"


def _put(value: Any, content: Any) -> None:
    """Give an object the state that `_content` returned."""
    if isinstance(value, _Saved):
        value.load(content)
    elif isinstance(value, np.ndarray):
        value[...] = content
    elif isinstance(value, dict | list):
        _fill(value, content)
    elif _has(value, "state_dict", "load_state_dict"):
        value.load_state_dict(content)
    elif _has(value, "get_state", "set_state"):
        value.set_state(content)
    elif isinstance(value, np.random.Generator):
        value.bit_generator.state = content
    else:
        for variable, array in zip(_variables(value) or (), content, strict=True):
            variable.assign(array)


def _fill(value: Any, content: Any) -> None:
    """Replace the entries of a dict or list, but its arrays in place: the program may have other names for them."""
    if isinstance(value, dict):
        for key in [key for key in value if key not in content]:
            del value[key]
    else:
        value[len(content) :] = []
    for key, new in content.items() if isinstance(content, dict) else enumerate(content):
        old = value.get(key) if isinstance(value, dict) else value[key] if key < len(value) else None
        if isinstance(old, np.ndarray) and (old.shape, old.dtype) == (np.shape(new), getattr(new, "dtype", None)):
            old[...] = new
        elif isinstance(old, dict | list) and isinstance(new, type(old)):
            _fill(old, new)
        elif isinstance(value, dict) or key < len(value):
            value[key] = new
        else:
            value.append(new)


def _has(value: Any, *names: str) -> bool:
    return all(callable(getattr(value, name, None)) for name in names)


def _variables(value: Any) -> Sequence[Any] | None:
    if _has(value, "assign", "numpy"):
        return [value]
    found = getattr(value, "variables", None)
    return list(found) if isinstance(found, list | tuple) else None


def write(value: Any, path: str, arrays: Arrays) -> Any:
    """Return JSON for numbers, texts, bytes, arrays, tensors, and dicts, lists and tuples of these.

    Args:
        value: What to write.
        path: Its name in messages.
        arrays: Receives copies of its arrays.

    Raises:
        InputError: It contains something else; the message has the path.
    """
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, bytes):
        arrays.append(np.frombuffer(value, np.uint8))
        return {"bytes": {"at": len(arrays) - 1}}
    if isinstance(value, np.ndarray | np.generic):
        return {"array": _append(np.array(value), path, arrays)}
    torch = sys.modules.get("torch")
    if torch and isinstance(value, torch.Tensor):
        tensor = value.detach().cpu()
        # NumPy has no bfloat16 of its own.
        bits = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
        return {"tensor": _append(np.array(bits.numpy()), path, arrays) | {"type": str(tensor.dtype)}}
    if isinstance(value, Mapping):
        return {"dict": [[_key(key, path), write(each, f"{path}.{key}", arrays)] for key, each in value.items()]}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [write(each, f"{path}.{number}", arrays) for number, each in enumerate(value)]}
    raise InputError(
        f"state {path!r} is a {type(value).__name__}; expected numbers, texts, bytes, arrays, or dicts and lists of"
        f" these; {_WAY_ON}"
    )


def _append(array: npt.NDArray[Any], path: str, arrays: Arrays) -> dict[str, Any]:
    if array.dtype.hasobject:
        raise InputError(f"state {path!r} is an array of Python objects, which only pickle could save; {_WAY_ON}")
    # NumPy's files know no types of other packages, such as the bfloat16 of ml_dtypes.
    arrays.append(array.view(f"u{array.dtype.itemsize}") if array.dtype.isbuiltin == 2 else array)
    return {"at": len(arrays) - 1, "type": array.dtype.name}


def _key(key: Any, path: str) -> Any:
    if not isinstance(key, str | int) or isinstance(key, bool):
        raise InputError(f"state {path!r} has the key {key!r}; expected a text or a whole number, or {_WAY_ON}")
    return key


def read(node: Any, arrays: Sequence[npt.NDArray[Any]]) -> Any:
    """Return the value that `write` wrote."""
    if not isinstance(node, dict):
        return node
    ((kind, value),) = node.items()
    if kind == "dict":
        return {key: read(each, arrays) for key, each in value}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(read(each, arrays) for each in value)
    array = arrays[value["at"]]
    if kind == "bytes":
        return array.tobytes()
    if kind == "tensor":
        torch = sys.modules["torch"]
        tensor = torch.from_numpy(array.copy())
        return tensor.view(torch.bfloat16) if value["type"] == "torch.bfloat16" else tensor
    # The program that saved it had the type's package, such as ml_dtypes.
    return array if array.dtype.name == value["type"] else array.view(np.dtype(value["type"]))
