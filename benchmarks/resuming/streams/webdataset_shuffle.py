"""Read a shuffled WebDataset twice with the same seed, and look for a state."""

import io
import json
import tarfile
import tempfile

import webdataset


def shards(folder):
    """Write 4 shards of 25 samples; return their pattern."""
    for shard in range(4):
        with tarfile.open(f"{folder}/{shard}.tar", "w") as archive:
            for number in range(shard * 25, shard * 25 + 25):
                content = str(number).encode()
                member = tarfile.TarInfo(f"{number:03}.txt")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return f"{folder}/{{0..3}}.tar"


def order(pattern, shuffle):
    """Return the samples of an epoch, as a new process reads them."""
    dataset = webdataset.WebDataset(pattern, shardshuffle=4, seed=1, empty_check=False)
    return [int(sample["txt"]) for sample in shuffle(dataset)]


kinds = {
    "seed=1 and no shuffle of samples": lambda dataset: dataset,
    "seed=1 and .shuffle(20)": lambda dataset: dataset.shuffle(20),
    "seed=1 and .shuffle(20, seed=1)": lambda dataset: dataset.shuffle(20, seed=1),
    "detshuffle(20, seed=1)": lambda dataset: dataset.compose(webdataset.detshuffle(20, seed=1)),
}
cases = {}
with tempfile.TemporaryDirectory() as folder:
    pattern = shards(folder)
    for name, shuffle in kinds.items():
        try:
            cases[name] = 0 if order(pattern, shuffle) == order(pattern, shuffle) else "another order at each start"
        except Exception as error:
            cases[name] = f"refused: {type(error).__name__}"
    dataset = webdataset.WebDataset(pattern, shardshuffle=4, seed=1, empty_check=False)
    cases["its state"] = "has a state_dict" if hasattr(dataset, "state_dict") else "has no state to save"
versions = {"webdataset": webdataset.__version__}
continued = "reading again from the start, to skip"
print(json.dumps({"library": "WebDataset", "versions": versions, "continued": continued, "cases": cases}))
