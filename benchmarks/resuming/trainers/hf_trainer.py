"""Hugging Face's Trainer, which resumes from the newest folder of its checkpoints, as its documentation shows."""

import os
import time

os.environ |= {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
import torch
import transformers
from transformers.trainer_utils import get_last_checkpoint

torch.set_num_threads(1)
transformers.set_seed(1)
generator = torch.Generator().manual_seed(0)
data = [{"x": torch.randn(4, generator=generator), "index": index} for index in range(64)]


class Net(torch.nn.Module):
    """A small network with dropout."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))

    def forward(self, x, index):
        """Return the loss."""
        self.examples = index.tolist()
        return {"loss": ((self.layers(x)[:, 0] - x.sum(1)) ** 2).mean()}


class Log(transformers.TrainerCallback):
    """Prints each step."""

    def on_log(self, args, state, control, logs, model, **more):
        """Print a step."""
        if "loss" in logs:
            time.sleep(0.05)
            numbers = f"loss={logs['loss']} learning_rate={logs['learning_rate']} examples={model.examples}"
            print(f"step {state.global_step}: {numbers}", flush=True)


folder = os.environ["AIP_CHECKPOINT_DIR"]
arguments = transformers.TrainingArguments(
    folder,
    per_device_train_batch_size=8,
    num_train_epochs=6,
    save_steps=5,
    logging_steps=1,
    learning_rate=0.01,
    remove_unused_columns=False,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = transformers.Trainer(Net(), arguments, train_dataset=data, callbacks=[Log()])
trainer.remove_callback(transformers.PrinterCallback)
trainer.train(resume_from_checkpoint=get_last_checkpoint(folder) if os.path.isdir(folder) else None)
trainer.save_model(os.environ["AIP_MODEL_DIR"])
