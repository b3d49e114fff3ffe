#!/usr/bin/env bash
# Lightning 2.6.6: a training that SIGTERM stops exits with 0, so a preempted job counts as finished.
#
# `fit` stops at the end of the batch and raises SIGTERMException, a SystemExit without a code. The process ends with
# exit code 0 and without a line; what follows `fit`, such as the export of the model, is not run. Vertex AI, Kubernetes
# and Slurm take 0 for success and do not start the job again. A program has to catch SystemExit around `fit`, or look
# at `trainer.received_sigterm`, and exit with another code.
#
# Seen on 2026-11-29 with Python 3.11 and torch 2.14.1: the line below. Exits with 1 if it changes. Installs PyTorch.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lightning==2.6.6 torch==2.14.1
cat > "$folder/train.py" <<'PYTHON'
import os
import signal
import warnings

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import lightning
import torch

warnings.simplefilter("ignore")


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, number):
        if number == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


trainer = lightning.Trainer(
    max_epochs=1,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Net(), torch.utils.data.DataLoader(torch.zeros(8, 1)))
print("trained", trainer.global_step)
PYTHON
code=0
output=$("$folder/venv/bin/python" "$folder/train.py" 2> "$folder/log") || code=$?
echo "SIGTERM in the fourth of 8 batches: exit code $code, printed after fit: '${output}'"
[[ $code == 0 && -z $output ]] && ! grep -q Traceback "$folder/log"
