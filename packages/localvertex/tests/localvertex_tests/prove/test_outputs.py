"""Arrays, metrics and scalars are read from files; nothing in a file is run."""

import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from localvertex.prove.outputs import UNREAD, Observation, observe


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "output" / "model").mkdir(parents=True)
    return tmp_path / "output"


def observed(base: Path) -> Observation:
    return observe(base, [], [])


def value(base: Path, name: str) -> object:
    (point,) = observed(base)[name]
    return point.value if isinstance(point.value, str) else np.asarray(point.value).tolist()


class Bomb:
    """Makes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self._path),)


@pytest.mark.parametrize(
    "name", ["model.pkl", "model.npy", "model.npz", "model.pt", "model.h5", "model.keras", "x.json"]
)
def test_no_pickle_is_loaded(base: Path, name: str) -> None:
    bomb, path = Bomb(base / "exploded"), base / "model" / name
    if name == "model.npz":
        np.savez(path, bomb=np.array([bomb], dtype=object), good=np.ones(2))
    elif name == "model.npy":
        np.save(path, np.array([bomb], dtype=object), allow_pickle=True)
    else:
        path.write_bytes(pickle.dumps(bomb))
    found = observed(base)
    assert not (base / "exploded").exists()
    names = [f"output/model/{name}|{each}" for each in (["bomb", "good"] if name == "model.npz" else [""])]
    assert [*found] == names
    assert found[names[0]][0].value.startswith(UNREAD)


def test_arrays_of_numpy(base: Path) -> None:
    np.savez(base / "model" / "w.npz", w=[1.0, 2.0], steps=3, elapsed_seconds=4.0, text="abc")
    np.save(base / "model" / "v.npy", [[1, 2]])
    assert value(base, "output/model/w.npz|w") == [1, 2]
    assert value(base, "output/model/w.npz|text") == "abc"
    assert value(base, "output/model/v.npy|") == [[1, 2]]
    assert "output/model/w.npz|elapsed_seconds" not in observed(base)


def test_arrays_of_hdf5_and_keras(base: Path) -> None:
    import zipfile

    h5py = pytest.importorskip("h5py")
    with h5py.File(base / "model" / "w.h5", "w") as file:
        file["layer/kernel"] = [1.5, 2.5]
    with zipfile.ZipFile(base / "model" / "m.keras", "w") as archive:
        archive.write(base / "model" / "w.h5", "model.weights.h5")
    assert value(base, "output/model/w.h5|layer/kernel") == [1.5, 2.5]
    assert value(base, "output/model/m.keras|layer/kernel") == [1.5, 2.5]


def test_arrays_of_safetensors(base: Path) -> None:
    tensors = {
        "w": ("F32", [0, 8]),
        "mask": ("BOOL", [8, 10]),
        "small": ("F8_E4M3", [10, 11]),
        "half": ("BF16", [11, 13]),
    }
    heads = {name: {"dtype": kind, "data_offsets": offsets} for name, (kind, offsets) in tensors.items()}
    head = json.dumps({"__metadata__": {}} | heads).encode()
    content = struct.pack("<Q", len(head)) + head + np.array([0.5, 2.0], "<f4").tobytes() + bytes([0, 1, 2, 3, 4])
    (base / "model" / "w.safetensors").write_bytes(content)
    assert value(base, "output/model/w.safetensors|w") == [0.5, 2.0]
    assert value(base, "output/model/w.safetensors|mask") == [0, 1]
    assert value(base, "output/model/w.safetensors|half") == [3, 4]


def test_numbers_and_digests_of_json(base: Path) -> None:
    content = {"loss": 0.5, "seconds": 3, "best": {"score": [1, 2.5]}, "weights_sha256": "ab" * 32, "name": "x"}
    (base / "model" / "eval_log.json").write_text(json.dumps(content))
    found = {name.rpartition("|")[2]: value(base, name) for name in observed(base)}
    assert found == {"loss": 0.5, "best.score": [1, 2.5], "weights_sha256": "ab" * 32}


def test_scalars_of_tensorboard(base: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event

    content = b""
    for step in (1, 2, 3):
        event = Event(step=step)
        value = event.summary.value.add(tag="loss")
        if step == 1:
            value.simple_value = 0.5
        else:
            # As TensorFlow writes it.
            value.tensor.dtype, value.tensor.tensor_content = 1, np.array(step / 2, "<f4").tobytes()
        record = event.SerializeToString()
        content += struct.pack("<QI", len(record), 0) + record + bytes(4)
    (base / "logs").mkdir()
    # A kill has cut the last event.
    (base / "logs" / "events.out.tfevents.1.host").write_bytes(content + content[:30])
    (base / "bad").mkdir()
    (base / "bad" / "events.out.tfevents.1.host").write_bytes(struct.pack("<QI", 3, 0) + b"\xff\xff\xff" + bytes(4))
    observation = observed(base)
    assert observation["output/bad|scalars|"][0].value.startswith(UNREAD)
    found = observation["output/logs|scalars|loss"]
    assert [(each.key, each.value.item()) for each in found] == [((1,), 0.5), ((2,), 1.0), ((3,), 1.5)]


def test_the_event_log_of_a_replica(base: Path, tmp_path: Path) -> None:
    events = base / "checkpoints" / "events"
    events.mkdir(parents=True)
    steps = {"event": "steps", "first_step": 1, "last_step": 2, "loss": 0.5, "seconds": 3}
    start: dict[str, object] = {"event": "start"}
    lines = [start, {**steps}, start, {**steps, "learning_rate": 0.1}]
    texts = [json.dumps({"time": 1.0, **line}) for line in lines]
    (events / "workerpool0-0.jsonl").write_text("\n".join([*texts, "null", '{"event": 3}', '{"half']))
    log = tmp_path / "folder" / "workerpool0-0.log"
    log.parent.mkdir()
    log.write_text("")
    found = observe(base, [log], [])
    assert [(each.key, each.process) for each in found["workerpool0-0|event steps|loss"]] == [((1, 2), 0), ((1, 2), 1)]
    assert {*found} == {f"workerpool0-0|event steps|{name}" for name in ("loss", "learning_rate")}


def test_links_and_temporary_files_are_left_out(base: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"x": 1}')
    (base / "model" / "link.json").symlink_to(tmp_path / "secret.json")
    np.savez(base / "model" / "w.tmp.npz", w=1.0)
    os.mkfifo(base / "model" / "pipe.npz")
    assert observed(base) == {}


def test_what_an_earlier_process_has_left_in_its_own_folder_is_left_out(base: Path) -> None:
    for number, folder in enumerate(
        (base / "checkpoints", base / "checkpoints/attempt-0", base / "checkpoints/attempt-1")
    ):
        folder.mkdir()
        np.savez(folder / "w.npz", w=1.0)
        os.utime(folder / "w.npz", (number, number))
    names = [*observe(base, [], [], started=2.0)]
    assert names == ["output/checkpoints/attempt-1/w.npz|w", "output/checkpoints/w.npz|w"]
