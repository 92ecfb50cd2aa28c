"""What older tutorials write for Lightning's Trainer, and what it is called today.

One table for the refusals of a config and for `hpc-train translate`. Source: Lightning's pages
"Upgrade from 1.x to 2.0".
"""

from __future__ import annotations

from collections.abc import Mapping

# Argument -> today's, and how its value is read.
RENAMED_ARGUMENTS: Mapping[str, tuple[str, type]] = {
    "weights_summary": ("enable_model_summary", bool),
    "progress_bar_refresh_rate": ("enable_progress_bar", bool),
    "reload_dataloaders_every_epoch": ("reload_dataloaders_every_n_epochs", int),
}
# Arguments that nothing is lost without.
UNUSED_ARGUMENTS: Mapping[str, str] = {
    "amp_backend": "torch's own AMP is the only one: write trainer.precision: 16-mixed (no Apex)",
    "auto_select_gpus": "Slurm chooses the GPUs; on one machine --devices does",
    "checkpoint_callback": "write checkpoint.every_n_steps or checkpoint.every_n_minutes",
    "flush_logs_every_n_steps": "it is an argument of the logger: loggers: [{class_path: ...}]",
    "process_position": "a progress bar's place means nothing in a log",
    "replace_sampler_ddp": "samples are dealt to ranks by global_batch_size",
    "weights_save_path": "everything goes into the run directory; write runs_dir to move it",
}
# Arguments that have no equivalent among the Trainer's: what to do instead.
REMOVED_ARGUMENTS: Mapping[str, str] = {
    "ckpt_path": "a stopped run goes on with hpc-train resume RUN; weights alone: init_from: PATH",
    "gpus": "write slurm.gpus_per_node, or --gpus; on one machine --devices 0,2 chooses",
    "num_processes": "write trainer.accelerator: cpu and slurm.gpus_per_node, the ranks a node",
    "distributed_backend": "write trainer.strategy",
    "amp_level": "the levels were Apex's: trainer.precision: 16-mixed is nearest to O1",
    "auto_lr_find": "find the rate once, with lightning.pytorch.tuner.Tuner, and write it into"
    " model.init_args",
    "auto_scale_batch_size": "write global_batch_size, and micro_batch_size for what fits a GPU",
    "early_stop_callback": "write trainer.callbacks: [{class_path:"
    " pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: val_loss}}]",
    "ipus": "hpc-train trains on GPUs and CPUs",
    "tpu_cores": "hpc-train trains on GPUs and CPUs",
    "log_gpu_memory": "the run's monitor records it; in a logger: the callback DeviceStatsMonitor",
    "move_metrics_to_cpu": "call .cpu() on what you keep",
    "multiple_trainloader_mode": "return CombinedLoader(loaders, mode) from train_dataloader",
    "prepare_data_per_node": "set it as an attribute of the LightningDataModule",
    "resume_from_checkpoint": "a stopped run goes on with hpc-train resume RUN; the weights of"
    " another training: init_from: PATH, at the top of the config",
    "stochastic_weight_avg": "write trainer.callbacks: [{class_path:"
    " pytorch_lightning.callbacks.StochasticWeightAveraging, init_args: {swa_lrs: ...}}]",
    "terminate_on_nan": "raise in training_step where the loss is not finite",
    "track_grad_norm": "log pytorch_lightning.utilities.grad_norm in on_before_optimizer_step",
    "truncated_bptt_steps": "cut the sequence in training_step, with manual optimization",
}
_GONE = "Lightning 2.0 has dropped it"
# Strategy (once also an accelerator) -> today's, and why; without one there is no equivalent.
OLD_STRATEGIES: Mapping[str, tuple[str, str]] = {
    "dp": ("ddp", "a process a GPU: the batch that dp split is now global_batch_size"),
    "ddp2": ("ddp", f"{_GONE}: a process a GPU instead of one a node"),
    "ddp_cpu": ("ddp", "with trainer.accelerator: cpu"),
    "ddp_spawn": ("ddp", "hpc-train starts the ranks"),
    "ddp_fork": ("ddp", "hpc-train starts the ranks"),
    "ddp_notebook": ("ddp", "hpc-train starts the ranks"),
    "ddp_spawn_find_unused_parameters_false": ("ddp", "hpc-train starts the ranks"),
    "horovod": ("ddp", f"{_GONE}: both average gradients by an all-reduce"),
    "bagua": ("ddp", f"{_GONE}: the same as its gradient_allreduce, its other algorithms are not"),
    "ddp_sharded": ("fsdp", f"{_GONE} with fairscale: torch shards the same by itself"),
    "ddp_sharded_spawn": ("fsdp", f"{_GONE} with fairscale: torch shards the same by itself"),
    "ddp_fully_sharded": ("fsdp", f"{_GONE} with fairscale: torch shards the same by itself"),
    "fairscale": ("fsdp", f"{_GONE}: torch shards the same by itself"),
    "fsdp_native": ("fsdp", "its name in Lightning 2"),
    "colossalai": ("", f"{_GONE}: fsdp or deepspeed_stage_3 shard a model"),
    "hivemind": ("", f"{_GONE}: ranks that come and go have no equivalent"),
    "collaborative": ("", f"{_GONE}: ranks that come and go have no equivalent"),
    "tpu_spawn": ("", "hpc-train trains on GPUs and CPUs"),
}
