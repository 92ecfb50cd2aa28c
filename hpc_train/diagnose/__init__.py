"""Why a run or a job failed: one engine and one set of rules for logs of all kinds."""
