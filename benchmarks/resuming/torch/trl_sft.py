"""Stop TRL's SFTTrainer in mid-epoch, resume, and compare weights: with LoRA, packing and dropout."""

import json
import os
import tempfile
import warnings

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "CUDA_VISIBLE_DEVICES": ""}
import datasets
import peft
import tokenizers
import torch
import transformers
import trl

warnings.simplefilter("ignore")
datasets.disable_progress_bars()
torch.set_num_threads(1)
WORDS = {word: number for number, word in enumerate(["<pad>", "<eos>", *"abcdefghijklmnopqrstuvwxyz "])}
TEXTS = [" ".join("abcdefghijklmnopqrstuvwxyz"[(row * step) % 26] for step in range(3 + row % 5)) for row in range(48)]


class Stop(transformers.TrainerCallback):
    """Stops at a step."""

    def on_step_end(self, args, state, control, **more):
        """Stop."""
        control.should_training_stop = state.global_step == 9


def train(folder, *, stop=False, resume=None, lora=False, **options):
    """Train 18 steps, or 9; return the weights."""
    transformers.set_seed(1)
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="<eos>"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>")
    config = transformers.GPT2Config(
        vocab_size=len(WORDS),
        n_positions=32,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
    )
    arguments = trl.SFTConfig(
        folder,
        per_device_train_batch_size=4,
        max_steps=18,
        save_steps=3,
        report_to=[],
        use_cpu=True,
        bf16=False,
        disable_tqdm=True,
        logging_strategy="no",
        seed=1,
        max_length=32,
        learning_rate=0.01,
        **options,
    )
    trainer = trl.SFTTrainer(
        transformers.GPT2LMHeadModel(config),
        arguments,
        train_dataset=datasets.Dataset.from_dict({"text": TEXTS}),
        processing_class=tokenizer,
        callbacks=[Stop()] if stop else [],
        peft_config=peft.LoraConfig(r=4, lora_dropout=0.1, target_modules=["c_attn"], fan_in_fan_out=True)
        if lora
        else None,
    )
    trainer.train(resume_from_checkpoint=resume)
    return {name: each.detach().clone() for name, each in trainer.model.named_parameters()}


cases = {}
with tempfile.TemporaryDirectory() as base:
    for number, (name, options) in enumerate(
        {
            "plain": {},
            "packing": {"packing": True},
            "LoRA": {"lora": True},
        }.items()
    ):
        whole = train(f"{base}/{number}-whole", **options)
        train(f"{base}/{number}", stop=True, **options)
        parts = train(f"{base}/{number}", resume=f"{base}/{number}/checkpoint-6", **options)
        cases[name] = max(float((whole[key] - parts[key]).abs().max()) for key in whole)
versions = {"trl": trl.__version__, "transformers": transformers.__version__, "peft": peft.__version__}
continued = "`SFTTrainer.train(resume_from_checkpoint=)`"
print(json.dumps({"library": "TRL", "versions": versions, "continued": continued, "cases": cases}))
