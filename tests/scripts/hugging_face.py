"""Hugging Face's Trainer with a model of one's own, as in many a fine-tuning script."""

import argparse
import time

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1)
        )

    def forward(self, x, labels):
        out = self.layers(x)
        return {"loss": (out.squeeze(1) - labels).square().mean(), "logits": out}


class Slow(TrainerCallback):
    def __init__(self, seconds):
        self.seconds = seconds

    def on_step_begin(self, args, state, control, **kwargs):
        time.sleep(self.seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="out")
    parser.add_argument("--slow", type=float, default=0.0)
    args = parser.parse_args()
    set_seed(1)
    x = torch.randn(96, 8)
    data = [{"x": row, "labels": row.sum()} for row in x]
    settings = TrainingArguments(
        output_dir=args.out,
        per_device_train_batch_size=4,
        num_train_epochs=3,
        learning_rate=0.01,
        lr_scheduler_type="cosine",
        save_steps=10,
        logging_steps=5,
        use_cpu=True,
        ddp_backend="gloo",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(Net(), settings, train_dataset=data, callbacks=[Slow(args.slow)])
    trainer.train()
    if trainer.is_world_process_zero():
        losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
        model = trainer.accelerator.unwrap_model(trainer.model).state_dict()
        state = {"model": model, "losses": losses, "step": trainer.state.global_step}
        torch.save(state, f"{args.out}/final.pt")
