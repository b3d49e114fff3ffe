"""Stop Hugging Face's Trainer in the middle of the second epoch, resume, and compare batches and weights."""

import json
import os
import tempfile
import warnings

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "CUDA_VISIBLE_DEVICES": ""}
import torch
import transformers

warnings.simplefilter("ignore")
torch.set_num_threads(1)


class Rows(torch.utils.data.Dataset):
    """Examples with noise, if wanted, and a note of which were read."""

    def __init__(self, noise=False):
        self.noise = noise

    def __len__(self):
        """Return the number of examples."""
        return 64

    def __getitem__(self, index):
        """Return an example."""
        x = torch.randn(4, generator=torch.Generator().manual_seed(index)) + (torch.rand(4) if self.noise else 0)
        return {"x": x, "index": index}


class Stream(torch.utils.data.IterableDataset):
    """The same, in sequence."""

    def __iter__(self):
        """Yield all examples."""
        return (Rows()[index] for index in range(64))


class Net(torch.nn.Module):
    """A small network with dropout that notes its batches."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
        self.batches = []

    def forward(self, x, index):
        """Return the loss."""
        self.batches.append(index.tolist())
        return {"loss": ((self.layers(x)[:, 0] - x.sum(1)) ** 2).mean()}


class Stop(transformers.TrainerCallback):
    """Stops at a step."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **more):
        """Stop."""
        control.should_training_stop = state.global_step == self.step


def train(folder, data, stop=None, resume=None, **options):
    """Train 3 epochs of 8 steps, or to a step; return the model."""
    transformers.set_seed(1)
    net = Net()
    arguments = transformers.TrainingArguments(
        folder,
        per_device_train_batch_size=8,
        max_steps=24,
        save_steps=5,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        learning_rate=0.01,
        remove_unused_columns=False,
        logging_strategy="no",
        seed=1,
        **options,
    )
    callbacks = [Stop(stop)] if stop else []
    trainer = transformers.Trainer(net, arguments, train_dataset=data, callbacks=callbacks)
    trainer.train(resume_from_checkpoint=resume)
    return net


cases = {}
with tempfile.TemporaryDirectory() as base:
    for number, (name, (data, options)) in enumerate(
        {
            "map-style dataset, dropout": (Rows(), {}),
            "the same, gradient accumulation": (Rows(), {"gradient_accumulation_steps": 2}),
            "random numbers of __getitem__": (Rows(noise=True), {}),
            "random numbers of __getitem__, 2 workers": (Rows(noise=True), {"dataloader_num_workers": 2}),
            "iterable dataset": (Stream(), {}),
            "ignore_data_skip": (Rows(), {"ignore_data_skip": True}),
        }.items()
    ):
        whole = train(f"{base}/{number}-whole", data, **options)
        first = train(f"{base}/{number}", data, stop=13, **options)
        parts = train(f"{base}/{number}", data, resume=f"{base}/{number}/checkpoint-10", **options)
        gap = max(float((a - b).abs().max()) for a, b in zip(whole.parameters(), parts.parameters(), strict=True))
        if whole.batches[-len(parts.batches) :] == parts.batches:
            cases[name] = gap
        else:
            is_start = parts.batches[0] == first.batches[0]
            cases[name] = "begins the data again" if is_start else "other batches"
versions = {"transformers": transformers.__version__, "torch": torch.__version__}
continued = "`resume_from_checkpoint`, in mid-epoch"
print(json.dumps({"library": "Hugging Face Trainer", "versions": versions, "continued": continued, "cases": cases}))
