"""Save the state of an IterableDataset of Hugging Face's datasets, restore it, and compare what follows."""

import collections
import json
import os

os.environ["HF_HUB_OFFLINE"] = "1"
import datasets

rows = datasets.Dataset.from_dict({"number": range(100)})


def streams(shards=1):
    """Return a stream of 100 rows."""
    return rows.to_iterable_dataset(num_shards=shards)


def twice():
    """Return a stream that is resumed two times."""
    return streams()


kinds = {
    "plain": lambda: streams(),
    "4 shards": lambda: streams(4),
    "map and filter": lambda: (
        streams(4).map(lambda row: {"half": row["number"] / 2}).filter(lambda row: row["half"] % 3)
    ),
    "batch": lambda: streams(4).batch(3),
    "shuffle(buffer_size=1), 4 shards": lambda: streams(4).shuffle(seed=1, buffer_size=1),
    "shuffle(buffer_size=20)": lambda: streams(4).shuffle(seed=1, buffer_size=20),
    "interleave_datasets": lambda: datasets.interleave_datasets([streams(2), streams(2)]),
}


def read(stream, number=None):
    """Return the numbers of some rows, or of all."""
    found = []
    for row in stream:
        found.append(row["number"])
        if len(found) == number:
            break
    return found


def flat(found):
    """Return the numbers of rows or batches."""
    return [number for each in found for number in (each if isinstance(each, list) else [each])]


def answer(seen, rest, later):
    """Return how the numbers after a resume differ from those that were left."""
    if later == rest:
        return 0
    lost = collections.Counter(flat(rest)) - collections.Counter(flat(later))
    again = collections.Counter(flat(later)) - collections.Counter(flat(rest))
    lost, again = lost.total(), again.total()
    return f"{again} rows twice, {lost} never" if again or lost else "another order"


cases = {}
for name, make in kinds.items():
    stream, whole, other = make(), read(make()), make()
    seen = read(stream, 13)
    try:
        other.load_state_dict(stream.state_dict())
        cases[name] = answer(seen, whole[13:], read(other))
    except Exception as error:
        cases[name] = f"refused: {type(error).__name__}"
stream, second, third = streams(4), streams(4), streams(4)
seen = read(stream, 13)
second.load_state_dict(stream.state_dict())
seen += read(second, 20)
third.load_state_dict(second.state_dict())
cases["resumed twice"] = answer(seen, read(streams(4))[33:], read(third))
versions = {"datasets": datasets.__version__}
continued = "`IterableDataset.state_dict`"
print(json.dumps({"library": "datasets", "versions": versions, "continued": continued, "cases": cases}))
