"""The state of a program: its objects are taken apart into arrays and JSON, and put back in place.

An object of `state` is, in this order: an array or tensor, which is filled in place; a dict or list, whose entries are
replaced; an object with state_dict and load_state_dict (PyTorch), or with get_state and set_state; a NumPy generator;
an object whose `variables` can be assigned (Keras, TensorFlow). What they return may contain numbers, texts, bytes,
arrays, tensors of PyTorch, arrays and random keys of JAX, and dicts, lists, tuples and NamedTuples of these. No
framework is imported here, and nothing is pickled.
"""

import collections
import itertools
import random
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exact_resume.errors import InputError
from exact_resume.text import on_one_line, report

_PLAIN = (bool, int, float, str, type(None))
_WAY_ON = "use exact_resume.saved(it, save=..., load=...)"
Arrays = list[npt.NDArray[Any]]


def saved(value: Any, *, save: Callable[[Any], Any], load: Callable[[Any], object]) -> Any:
    """Return an object for `state` with functions of its own, such as a model of XGBoost.

    Args:
        value: The object.
        save: Called with the object; returns bytes, arrays, numbers, texts, or dicts, lists and tuples of these.
        load: Called with what `save` returned.
    """
    return types.SimpleNamespace(get_state=lambda: save(value), set_state=load)


class Stream:
    """An iterator over items whose source cannot save its position: it reads again what was taken before.

    Give it as `state`, and take the items of each step from it. Whatever reads ahead or shuffles belongs inside, with
    random generators of its own. Skipping may take an hour.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        self._items, self._num_taken = iter(items), 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        item = next(self._items)
        self._num_taken += 1
        return item

    def get_state(self) -> int:
        """Return the number of items taken."""
        return self._num_taken

    def set_state(self, num_taken: int) -> None:
        """Read the items that were taken before.

        Raises:
            InputError: There are fewer, or this stream is further.
        """
        started = time.monotonic()
        for _ in itertools.islice(self, max(0, num_taken - self._num_taken)):
            pass
        if self._num_taken != num_taken:
            raise InputError(
                f"the stream is at its item {self._num_taken}, the checkpoint at {num_taken}; give the whole stream,"
                " from its first item on"
            )
        report(f"skipped {num_taken} items of a stream in {time.monotonic() - started:.1f} s")


class State:
    """Named objects of a program."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        """Make the checks that are possible before the first step.

        Raises:
            InputError: An object cannot be saved, or has not been built; the message has its path.
        """
        self._objects = objects
        tree, arrays = self.take()
        self.shapes = {
            path: f"{arrays[value['at']].shape} {value['type']}"
            for name, node in tree.items()
            for path, kind, value in leaves(node, name)
            if kind not in ("", "bytes")
        }
        """Path of each array -> shape and type, for the identity of the run."""

    def num_taken(self) -> dict[str, int]:
        """Return how many items of each stream were taken."""
        return {name: each.get_state() for name, each in self._objects.items() if isinstance(each, Stream)}

    def take(self) -> tuple[Any, Arrays]:
        """Return the state now: JSON, and copies of the arrays that it counts."""
        arrays: Arrays = []
        return {name: write(content_of(each, name), name, arrays) for name, each in self._objects.items()}, arrays

    def put(self, tree: Any, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Give all objects the state that `take` returned."""
        for name, each in self._objects.items():
            put(each, read(tree[name], arrays))


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


def leaves(node: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield path, kind and content of what `write` wrote: of arrays and bytes their place, others have the kind ""."""
    ((kind, value),) = node.items() if isinstance(node, dict) else [("", node)]
    if isinstance(value, list):
        pairs = value if kind in ("dict", "counter") else enumerate(value[2] if kind == "named" else value)
        for key, child in pairs:
            yield from leaves(child, f"{path}.{key}")
    else:
        yield path, kind, value


def content_of(value: Any, path: str) -> Any:
    """Return the state of an object, as containers of arrays and plain values."""
    if _is_array(value) or isinstance(value, dict | list):
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
        way_on = "call it with a batch, or give it its input shape, before the run"
        if hasattr(value, "apply_gradients"):
            way_on = "call optimizer.build(model.trainable_variables) before the run"
        raise InputError(f"state {path!r} is not built yet: {way_on}")
    return [np.asarray(each) for each in variables]


def put(value: Any, content: Any) -> None:
    """Give an object the state that `content_of` returned."""
    if _is_array(value):
        _overwrite(value, content)
    elif isinstance(value, dict | list):
        _fill(value, content)
    elif _has(value, "state_dict", "load_state_dict"):
        value.load_state_dict(content)
        _restore_types(value, content)
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
        old: Any = value.get(key) if isinstance(value, dict) else value[key] if key < len(value) else None
        if _is_array(old) and (old.shape, old.dtype) == (np.shape(new), getattr(new, "dtype", None)):
            _overwrite(old, new)
        elif any(isinstance(old, kind) and isinstance(new, kind) for kind in (dict, list)):
            _fill(old, new)
        elif isinstance(value, dict) or key < len(value):
            value[key] = new
        else:
            value.append(new)


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_jax(value: Any) -> bool:
    """Return whether it is an array or a random key of JAX, which cannot change."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or _is_tensor(value)


def _overwrite(old: Any, new: Any) -> None:
    (old.detach() if _is_tensor(old) else old)[...] = new


def _restore_types(value: Any, content: Any) -> None:
    """Restore the dtypes of a PyTorch optimizer's tensors, which it converts to the dtype of its weights."""
    torch = sys.modules.get("torch")
    if torch and isinstance(value, torch.optim.Optimizer):
        for number, loaded in value.state_dict()["state"].items():
            for name, tensor in content["state"][number].items():
                if _is_tensor(tensor):
                    loaded[name] = tensor.to(loaded[name].device)


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
        return {"array" if isinstance(value, np.ndarray) else "scalar": _append(np.array(value), path, arrays)}
    if _is_tensor(value):
        torch = sys.modules["torch"]
        # NumPy has no bfloat16 and no float8 of its own, so small types are saved as their bits.
        kind = {1: torch.uint8, 2: torch.int16}.get(value.itemsize, value.dtype)
        try:
            bits = value.detach().cpu().view(kind).numpy()
        except (RuntimeError, TypeError, ValueError) as error:
            # Also of a lazy module that is not built yet.
            raise InputError(
                f"state {path!r} is a tensor that NumPy cannot hold ({on_one_line(error, 400)}); {_WAY_ON}"
            ) from None
        return {"tensor": _append(np.array(bits), path, arrays) | {"type": str(value.dtype)}}
    if is_jax(value):
        jax = sys.modules["jax"]
        is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
        node = _append(np.array(jax.random.key_data(value) if is_key else value), path, arrays)
        return {"jax": node | {"key": str(jax.random.key_impl(value)) if is_key else ""}}
    if isinstance(value, Mapping):
        # PyTorch's MultiStepLR has one.
        kind = "counter" if isinstance(value, collections.Counter) else "dict"
        return {kind: [[_key(key, path), write(each, f"{path}.{key}", arrays)] for key, each in value.items()]}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        nodes = [write(each, f"{path}.{number}", arrays) for number, each in enumerate(value)]
        if not hasattr(value, "_fields"):
            return {kind: nodes}
        module, name = type(value).__module__, type(value).__qualname__
        if _named_tuple(module, name, len(nodes)) is not type(value):
            raise InputError(f"state {path!r} is a {name}, which no module has under this name; {_WAY_ON}")
        return {"named": [module, name, nodes]}
    raise InputError(
        f"state {path!r} is a {type(value).__name__}; expected numbers, texts, bytes, arrays, or dicts and lists of"
        f" these; {_WAY_ON}"
    )


def _named_tuple(module: str, name: str, num_fields: int) -> type[tuple[Any, ...]] | None:
    """Return a class of NamedTuples that the program has imported, or None; no other class is ever called."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    is_one = isinstance(found, type) and issubclass(found, tuple)
    return found if is_one and len(getattr(found, "_fields", ())) == num_fields else None


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
    if kind in ("dict", "counter"):
        return (dict if kind == "dict" else collections.Counter)({key: read(each, arrays) for key, each in value})
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(read(each, arrays) for each in value)
    if kind == "named":
        module, name, nodes = value
        if found := _named_tuple(module, name, len(nodes)):
            return tuple.__new__(found, [read(each, arrays) for each in nodes])
        raise InputError(
            f"the checkpoint has a NamedTuple {module}.{name} of {len(nodes)} fields, which this program does not have;"
            f" import {module} before the run, or restore the class"
        )
    array = arrays[value["at"]]
    if kind == "bytes":
        return array.tobytes()
    if kind == "tensor":
        torch = sys.modules["torch"]
        return torch.from_numpy(array.copy()).view(getattr(torch, value["type"].removeprefix("torch.")))
    # The program that saved it had the type's package, such as ml_dtypes.
    array = array if array.dtype.name == value["type"] else array.view(np.dtype(value["type"]))
    if kind in ("array", "scalar"):
        return array if kind == "array" else array[()]
    jax = sys.modules["jax"]
    return jax.random.wrap_key_data(array, impl=value["key"]) if value["key"] else jax.numpy.asarray(array)
