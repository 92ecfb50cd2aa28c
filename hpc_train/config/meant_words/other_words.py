"""What other trainers and launchers call things, and what each is here. Data.

Sources: sbatch(1), torchrun, accelerate, deepspeed, LightningCLI, and the TrainingArguments of
transformers.
"""

from __future__ import annotations

# Words of sbatch and of other launchers for what has a key of its own here.
OTHER_WORDS = {
    **dict.fromkeys(("gpus", "gpu", "ntasks_per_node", "ppn"), "slurm.gpus_per_node"),
    "queue": "slurm.partition",
    **dict.fromkeys(("memory", "ram"), "slurm.mem"),
    "gres": "slurm.gpus_per_node, how many of each node, and slurm.gpu_type where it counts",
    "array": "sweep: {{KEY: [VALUES]}}, which makes a job array",
    **dict.fromkeys(("output", "error"), "nothing: `hpc-train logs RUN` shows the ranks' logs"),
    **dict.fromkeys(
        ("ntasks", "world_size", "ranks", "num_ranks", "nproc"),
        "slurm.nodes and slurm.gpus_per_node: a rank a GPU",
    ),
    **dict.fromkeys(
        ("cpus_per_task", "cpus_per_rank", "cpu", "cpus", "cores", "ncpus"), "slurm.cpus_per_gpu"
    ),
    **dict.fromkeys(
        ("walltime", "time_limit", "timelimit", "timeout_min", "duration"), "slurm.time"
    ),
    **dict.fromkeys(
        (
            *("job_name", "run_name", "experiment_name", "exp_name", "experiment", "task", "job"),
            "task_name",
        ),
        "name",
    ),
    **dict.fromkeys(
        ("batch_size", "train_batch_size", "total_batch_size", "batch", "bs"), "global_batch_size"
    ),
    **dict.fromkeys(("logger", "logging", "log", "tracking"), "loggers"),
    **dict.fromkeys(("site", "profile", "site_profile", "cluster_profile"), "cluster_profile"),
    "cluster": "the option --cluster slurm or --cluster local",
    **dict.fromkeys(
        (
            *("monitor", "save_top_k", "save_last", "dirpath", "filename", "save_weights_only"),
            *("every_n_epochs", "every_n_train_steps", "save_on_train_epoch_end"),
            *("model_checkpoint", "checkpoint_callback"),
        ),
        "it under init_args of a ModelCheckpoint in trainer.callbacks",
    ),
    **dict.fromkeys(
        (
            *("datamodule", "dataset", "dataloader", "loader", "train_loader"),
            *("train_dataloader", "train_data", "training_data"),
        ),
        "data: {{class_path: ...}}",
    ),
    **dict.fromkeys(
        ("net", "arch", "architecture", "backbone", "lightning_module", "model_class"),
        "model: {{class_path: ...}}",
    ),
    **dict.fromkeys(
        ("command", "cmd", "entrypoint", "program", "train_script", "training_script"),
        "script: {{path: train.py, args: [...]}}, for a training script of your own",
    ),
    **dict.fromkeys(
        ("environment", "variables", "env_vars", "environment_variables"),
        "env: {{variables: {{NAME: VALUE}}}}",
    ),
    "early_stopping": "trainer: {{callbacks: [{{class_path: pytorch_lightning.callbacks"
    ".EarlyStopping, init_args: {{monitor: val_loss, patience: 3}}}}]}}",
    **dict.fromkeys(
        ("val", "validation", "eval", "evaluation"),
        "val_dataloader into your DataModule, and how often: trainer.check_val_every_n_epoch",
    ),
    "debug": "trainer.fast_dev_run, which trains a few batches alone",
    **dict.fromkeys(("sbatch", "resources", "scheduler_options"), "slurm"),
    **dict.fromkeys(("train", "training", "train_config", "training_args"), "trainer"),
    **dict.fromkeys(("ckpt", "checkpoints", "checkpointing"), "checkpoint"),
    **dict.fromkeys(("epochs", "num_epochs", "n_epochs", "num_train_epochs"), "trainer.max_epochs"),
    **dict.fromkeys(
        ("steps", "num_steps", "total_steps", "train_steps", "num_train_steps", "max_train_steps"),
        "trainer.max_steps",
    ),
    **dict.fromkeys(
        ("logging_steps", "log_steps", "log_interval", "log_every"), "trainer.log_every_n_steps"
    ),
    **dict.fromkeys(
        ("save_steps", "save_every", "save_interval", "checkpoint_every"),
        "checkpoint.every_n_steps",
    ),
    "save_strategy": "checkpoint.every_n_steps or checkpoint.every_n_minutes",
    "save_total_limit": "checkpoint.keep_last",
    "eval_steps": "trainer.val_check_interval, which counts batches",
    **dict.fromkeys(
        ("eval_strategy", "evaluation_strategy"),
        "trainer.check_val_every_n_epoch, or trainer.val_check_interval, which counts batches",
    ),
    **dict.fromkeys(
        (
            *("max_restarts", "restarts", "restart", "retries", "retry", "max_retries"),
            "max_requeues",
        ),
        "requeue.budget",
    ),
    "metric_for_best_model": "monitor under init_args of a ModelCheckpoint in trainer.callbacks",
    **dict.fromkeys(
        ("early_stopping_patience", "patience"),
        "patience under init_args of an EarlyStopping in trainer.callbacks",
    ),
    **{name: f"trainer.{name}" for name in ("callbacks", "max_epochs", "max_steps", "precision")},
    **dict.fromkeys(("seed_everything", "random_seed", "manual_seed"), "seed"),
    **dict.fromkeys(("mixed_precision", "amp", "dtype"), "trainer.precision"),
    **dict.fromkeys(("zero_optimization", "deepspeed", "fsdp", "distributed"), "trainer.strategy"),
    **dict.fromkeys(
        ("gradient_clipping", "gradient_clip", "clip_grad", "grad_clip", "max_grad_norm", "clip"),
        "trainer.gradient_clip_val",
    ),
    **dict.fromkeys(
        (
            *("gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum"),
            *("accumulate", "accumulation_steps", "gradient_accumulation"),
        ),
        "global_batch_size and micro_batch_size, from which it follows",
    ),
    **dict.fromkeys(
        ("train_micro_batch_size_per_gpu", "per_device_train_batch_size", "batch_size_per_gpu"),
        "micro_batch_size",
    ),
    **dict.fromkeys(("num_machines", "num_nodes", "nnodes", "n_nodes", "node"), "slurm.nodes"),
    **dict.fromkeys(
        ("num_processes", "num_gpus", "n_gpus", "ngpus", "nproc_per_node", "devices"),
        "slurm.gpus_per_node",
    ),
    **dict.fromkeys(
        (
            *("output_dir", "save_dir", "default_root_dir", "log_dir", "logging_dir"),
            *("out_dir", "outputs", "result_dir", "results", "exp_dir", "save_path"),
        ),
        "runs_dir",
    ),
}
# Settings that a class of the config has, by its section.
OF_A_CLASS = {
    **dict.fromkeys(
        (
            *("lr", "learning_rate", "optimizer", "scheduler", "lr_scheduler", "weight_decay"),
            *("optim", "lr_scheduler_type", "warmup_steps", "warmup_ratio", "optimiser"),
            *("momentum", "betas", "dropout", "loss", "loss_fn", "criterion", "num_classes"),
            *("hidden_size", "hidden_dim"),
        ),
        "model",
    ),
    **dict.fromkeys(
        (
            *("num_workers", "dataloader_num_workers", "workers", "pin_memory"),
            *("data_dir", "data_path", "data_root", "dataset_path", "dataset_dir", "root"),
        ),
        "data",
    ),
}
# What such a setting is called by most classes.
USUAL_NAMES = {
    "dataloader_num_workers": "num_workers",
    "lr_scheduler_type": "lr_scheduler",
    "workers": "num_workers",
    **dict.fromkeys(("optim", "optimiser"), "optimizer"),
}
# Switches, which have no name here but a value.
SWITCHES = {
    "fp16": "trainer.precision=16-mixed",
    "bf16": "trainer.precision=bf16-mixed",
    **dict.fromkeys(("no_cuda", "use_cpu"), "trainer.accelerator=cpu"),
    **dict.fromkeys(
        ("ddp_find_unused_parameters", "find_unused_parameters"),
        "trainer.strategy=ddp_find_unused_parameters_true",
    ),
    **{name: f"loggers=[{name}]" for name in ("wandb", "mlflow", "tensorboard", "csv")},
}
_GOES_ON = "`hpc-train resume RUN` goes on with a run; weights alone: init_from: PATH"
_PYTHON = "write env.venv or env.conda, whose Python the ranks get"
_FRESH_LAYERS = (
    "write init_leave_out=[head], in a file init_leave_out: [head]: these layers begin fresh, "
    "beside init_from"
)
# What is said of a key as a whole, in a section or without one.
SAID_OF_KEYS = {
    **dict.fromkeys(("resume", "resume_from_checkpoint", "ckpt_path", "checkpoint_path"), _GOES_ON),
    **dict.fromkeys(("python", "python_path", "interpreter"), _PYTHON),
    **dict.fromkeys(
        (
            "ignore_mismatched_sizes",
            "init_exclude",
            "exclude_layers",
            "strict_loading",
            "leave_out",
        ),
        _FRESH_LAYERS,
    ),
    "requeue": "leave it out: a run is requeued by itself; requeue.enabled=false switches it off",
    "hydra": "leave it out: of Hydra's keys defaults and _target_ are read",
    **dict.fromkeys(
        (
            *("local_rank", "node_rank", "master_addr", "master_port"),
            *("rdzv_backend", "rdzv_endpoint", "rdzv_id"),
        ),
        "leave it out: hpc-train tells each rank its place and where to meet the others",
    ),
    **dict.fromkeys(
        ("per_device_eval_batch_size", "eval_batch_size", "val_batch_size"),
        "your DataModule's val_dataloader decides it",
    ),
    **dict.fromkeys(
        ("do_train", "do_eval"), "leave it out: submit trains, hpc-train validate RUN validates"
    ),
    **dict.fromkeys(
        ("checkpoint_dir", "checkpoints_dir", "ckpt_dir"),
        "leave it out: they lie in the run's folder, under checkpoints/; runs_dir moves all runs,"
        " and dirpath of a ModelCheckpoint the best models",
    ),
    **dict.fromkeys(
        ("hparams", "params", "hyperparameters", "hyper_parameters", "model_params"),
        "write them as arguments of your model: model: {class_path: ..., init_args: {...}}",
    ),
    **dict.fromkeys(
        ("metric", "metrics"), "leave it out: your model logs it, self.log('val_acc', ...)"
    ),
    **dict.fromkeys(
        ("workdir", "work_dir", "working_dir", "cwd", "chdir"),
        "leave it out: the job starts in the folder where you type the command",
    ),
    "project": "write slurm.account for Slurm's; for wandb's: loggers: [{class_path: wandb,"
    " init_args: {project: ...}}]",
    "overwrite_output_dir": "leave it out: each run has a folder of its own",
    "slurm.requeue": "it is on; to switch it off write requeue.enabled=false, in a file"
    " requeue: {enabled: false}",
    **dict.fromkeys(("slurm.project", "slurm.allocation"), "write slurm.account"),
    **dict.fromkeys(("slurm.email", "slurm.mail", "email"), "write slurm.mail_user"),
}


def usual_form(key: str) -> str:
    """`max_epochs` for `maxEpoch`, `batch_size` for `batchsize`: a word above, or the key."""
    known = (*OTHER_WORDS, *OF_A_CLASS, *SWITCHES, *SAID_OF_KEYS)
    if key in known:
        return key
    return next((word for word in known if _squashed(word) == _squashed(key)), key)


def _squashed(word: str) -> str:
    return word.lower().replace("_", "").removesuffix("s")
