"""Save MosaicML's StreamingDataLoader in the middle of an epoch, and continue in another process."""

import importlib.metadata
import json
import multiprocessing
import tempfile

import numpy as np
from streaming import MDSWriter, StreamingDataLoader, StreamingDataset

FORK = multiprocessing.get_context("fork")


def yielded(folder, workers, size, state=None):
    """Return what is yielded after 5 batches, or after the state, and the state then."""
    dataset = StreamingDataset(local=folder, shuffle=True, shuffle_seed=1, batch_size=size, num_canonical_nodes=2)
    loader = StreamingDataLoader(dataset, batch_size=size, num_workers=workers)
    if state:
        loader.load_state_dict(state)
    found, kept = [], None
    for number, batch in enumerate(loader):
        if state or number >= 5:
            found += batch["number"].tolist()
        if not state and number == 4:
            kept = loader.state_dict()
    return {"found": found, "state": kept}


def in_a_process(*arguments):
    """Call it in a new process: the library keeps shared memory for as long as one runs."""
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=lambda: sender.send(yielded(*arguments)))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return None
    finally:
        process.join()


if __name__ == "__main__":
    cases = {}
    with tempfile.TemporaryDirectory() as folder:
        with MDSWriter(out=folder, columns={"number": "int"}, size_limit=200) as out:
            for number in np.arange(100).tolist():
                out.write({"number": number})
        for first, then, size in ((0, 0, 4), (2, 2, 4), (2, 0, 4), (1, 3, 4), (0, 0, 8)):
            whole = in_a_process(folder, first, 4)
            parts = in_a_process(folder, then, size, whole["state"])
            name = f"{first} workers" + (f", then {then}" if then != first else "")
            name += f", batch size 4 and then {size}" if size != 4 else ""
            if parts is None:
                cases[name] = "refused"
            else:
                is_rest = sorted(parts["found"]) == sorted(whole["found"])
                cases[name] = (
                    0 if parts["found"] == whole["found"] else "another order" if is_rest else "other examples"
                )
    versions = {"mosaicml-streaming": importlib.metadata.version("mosaicml-streaming")}
    continued = "`StreamingDataLoader.state_dict`"
    print(json.dumps({"library": "MosaicML Streaming", "versions": versions, "continued": continued, "cases": cases}))
