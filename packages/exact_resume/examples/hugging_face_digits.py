"""Hugging Face's Trainer on the digits of scikit-learn: python hugging_face_digits.py FOLDER, killed and run again.

Begin with `python -m exact_resume rehearse -- python hugging_face_digits.py FOLDER`. Two processes:
torchrun --nproc-per-node=2 hugging_face_digits.py FOLDER.
"""

import hashlib
import os
import sys
import tempfile
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch.utils.data import StackDataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import exact_resume

# With several threads, the last bits of a sum may differ from run to run.
torch.set_num_threads(1)
torch.manual_seed(0)
digits = load_digits()
tokens, labels, rows = torch.tensor(digits.data).long(), torch.tensor(digits.target), torch.arange(1797)
train, test = (
    StackDataset(input_ids=tokens[part], labels=labels[part], rows=rows[part])
    for part in (slice(1500), slice(1500, None))
)


class NotingTrainer(Trainer):
    """Writes the rows of a step into a file, if the environment names one."""

    def compute_loss(self, model: Any, inputs: Any, *given: Any, **named: Any) -> Any:
        """Return the loss; the model knows no rows."""
        rows = inputs.pop("rows")
        if model.training and (path := os.environ.get("EXAMPLES_SEEN")):
            with open(f"{path}-{self.args.world_size}-{self.args.process_index}", "a") as file:
                print(self.state.global_step, *rows.tolist(), file=file)
        return super().compute_loss(model, inputs, *given, **named)


config = BertConfig(
    hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=17, num_labels=10
)
arguments = TrainingArguments(
    tempfile.mkdtemp(), num_train_epochs=4, learning_rate=0.01, warmup_steps=20, lr_scheduler_type="cosine",
    per_device_train_batch_size=50 // int(os.environ.get("WORLD_SIZE", 1)), per_device_eval_batch_size=100,
    eval_strategy="epoch", logging_steps=10, remove_unused_columns=False, label_names=["labels"], report_to=[],
    use_cpu=True, ddp_backend="gloo" if "WORLD_SIZE" in os.environ else None,
)  # fmt: skip
trainer = NotingTrainer(
    BertForSequenceClassification(config), arguments, train_dataset=train, eval_dataset=test,
    compute_metrics=lambda found: {"accuracy": float((found.predictions.argmax(1) == found.label_ids).mean())},
)  # fmt: skip
folder = sys.argv[1] if sys.argv[1:] else os.environ["AIP_CHECKPOINT_DIR"]
exact_resume.hugging_face(trainer, folder, code=[__file__], save_every_steps=30).train()
print(hashlib.sha256(b"".join(each.numpy().tobytes() for each in trainer.model.state_dict().values())).hexdigest())
