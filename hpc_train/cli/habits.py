"""What is typed by habit of other commands, by command and option. Data."""

from __future__ import annotations

_EVALUATIONS = ("test", "validate", "predict")
_SWEEP = "hpc-train submit CFG --sweep KEY=VALUES"
# As Lightning and others name the file of weights, and that of what comes out.
_CHECKPOINT = ("ckpt-path", "ckpt-file", "checkpoint", "checkpoint-path", "resume", "weights")
_OUTPUT = ("o", "out", "output", "outfile", "output-file", "output-dir", "out-dir", "save", "csv")
_PREDICTIONS = (
    "predictions come as predictions/predictions.pt in the folder of the run that is made;"
    " torch.load reads them"
)
DOCTOR_THERE = (
    "it looks at the machine that it runs on: srun --nodelist={} hpc-train doctor;"
    " hpc-train doctor --nodes 1 looks at one that Slurm chooses"
)
STATES = {
    "failed": ("failed", "fail", "failures", "errors"),
    "completed": ("completed", "complete", "done", "finished", "success"),
    "cancelled": ("cancelled", "canceled"),
    "timed_out": ("timed-out", "timeout"),
    "lost": ("lost",),
    "pending": ("pending",),
}
# What is typed by habit, by command and option.
HABITS = {
    ("logs", "tail"): "write -n LINES",
    ("logs", "lines"): "write -n LINES",
    ("logs", "json"): "logs are what ranks have printed; hpc-train status RUN --json is the run",
    **dict.fromkeys(
        (
            *(("status", name) for name in ("watch", "follow", "f", "w")),
            *(("list", name) for name in ("watch", "follow", "f", "w")),
        ),
        "`hpc-train logs RUN -f` shows what comes; `watch hpc-train status RUN` asks again",
    ),
    **dict.fromkeys(
        (("rm", "r"), ("rm", "rf"), ("rm", "f"), ("rm", "force"), ("rm", "y")),
        "write --yes: it removes without a question, and last checkpoints, too",
    ),
    **dict.fromkeys(
        ((command, "wrap") for command in ("submit", "run", "launch", "render")),
        "a script is a word by itself: train.py -- ARGUMENTS",
    ),
    **dict.fromkeys(
        ((command, "m") for command in ("submit", "run", "launch", "render")),
        f"name the module's file: train.py -- ARGUMENTS; Hydra's multirun is {_SWEEP}",
    ),
    **dict.fromkeys(
        (
            (command, name)
            for command in ("submit", "run", "launch", "render")
            for name in ("multirun", "grid", "sweeper")
        ),
        f"write {_SWEEP}",
    ),
    **dict.fromkeys(
        ((command, "o") for command in ("submit", "run", "launch")),
        "a key of the config is a word by itself, without -o: trainer.max_epochs=3;"
        " `hpc-train logs RUN` shows the ranks' logs",
    ),
    **dict.fromkeys(
        (("run", "sweep"), ("launch", "sweep")),
        "one training at a time here: KEY=VALUE; on a cluster a sweep is a job array: hpc-train"
        " submit --sweep",
    ),
    **dict.fromkeys(
        (("run", name) for name in ("dry-run", "dryrun", "dry")),
        "nothing is trained by hpc-train submit --dry-run CFG, which takes the same words",
    ),
    **dict.fromkeys(
        (("run", name) for name in ("v", "vv", "verbose", "debug")),
        "leave it out: the ranks' prints are shown; the whole plan is"
        " hpc-train submit --dry-run -v CFG",
    ),
    ("submit", "launcher"): "write script.launcher=torchrun, srun or none",
    **dict.fromkeys(
        (("list", name) for name in ("running", "live", "r")),
        "write --active: runs that wait or train",
    ),
    **{
        (command, name): f"write --state {state}"
        for command in ("list", "rm")
        for state, names in STATES.items()
        for name in names
    },
    ("report", "csv"): "write --json, which holds the same",
    ("hpc-train", "V"): "write --version",
    ("hpc-train", "v"): "write --version, or leave it out in front of a command",
    (
        "hpc-train",
        "verbose",
    ): "leave it out: hpc-train submit --dry-run -v CFG shows the whole plan",
    **dict.fromkeys(
        (("doctor", name) for name in ("w", "nodelist", "node", "host")),
        DOCTOR_THERE.format("NODE"),
    ),
    ("report", "pdf"): "write --html PAGE, which a browser prints",
    ("rm", "all"): "write '*': all runs that have ended",
    **dict.fromkeys(
        (("list", name) for name in ("user", "u", "me")),
        "leave it out: it lists your own runs alone",
    ),
    ("resume", "all"): "name each run: `hpc-train list --state failed` shows those that failed",
    **{
        (command, name): f"the number of a job is a word by itself: hpc-train {command} NUMBER"
        for command in ("status", "logs", "cancel", "diagnose", "resume")
        for name in ("job", "j", "jobid", "job-id")
    },
    **{
        ("logs", name): "leave it out: what a rank writes to stdout and stderr is in one log"
        for name in ("stderr", "err", "stdout", "e", "error", "errors")
    },
    ("preflight", "N"): "write --nodes",
    **{
        (command, name): "write trainer.accelerator=cpu"
        for command in ("submit", "run", "launch", "render")
        for name in ("cpu", "cpu-only", "no-cuda", "no-gpu")
    },
    # scancel(1): what chooses several jobs at once, and what ends none of a run.
    **dict.fromkeys(
        (
            ("cancel", name)
            for name in (
                *("all", "a", "u", "user", "me", "t", "state", "running", "pending", "active"),
                *("p", "partition", "A", "account", "q", "qos", "w", "nodelist"),
            )
        ),
        "name each run: `hpc-train list --active` shows them",
    ),
    **dict.fromkeys(
        (("cancel", name) for name in ("n", "name", "jobname", "run")),
        "a name is a word by itself: hpc-train cancel NAME",
    ),
    **dict.fromkeys(
        (("cancel", name) for name in ("y", "yes", "f", "force", "i", "interactive")),
        "leave it out: it asks no question, and the ranks save before they end",
    ),
    **dict.fromkeys(
        (("cancel", name) for name in ("s", "signal")),
        "leave it out: it tells the ranks to save and to end",
    ),
    **dict.fromkeys(
        (("resume", name) for name in ("ckpt", *_CHECKPOINT)),
        "it goes on from the newest checkpoint; a run of its own begins with the best weights by:"
        " hpc-train submit CFG init_from=$(hpc-train checkpoints RUN --best)",
    ),
    **{
        (verb, name): "write --ckpt best, --ckpt last or --ckpt PATH"
        for verb in _EVALUATIONS
        for name in (*_CHECKPOINT, "best", "last", "model")
    },
    **{("predict", name): _PREDICTIONS for name in _OUTPUT},
    **{
        (verb, name): "the metrics are in the run that is made: hpc-train status RUN --json"
        for verb in ("test", "validate")
        for name in _OUTPUT
    },
    **{("report", name): "write --html PAGE, or --json > FILE" for name in ("o", "out", "output")},
}
