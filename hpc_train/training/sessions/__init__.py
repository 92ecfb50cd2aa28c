"""What `hpc_train.Session` stands on: its setup, its history, what a loop does wrongly with it."""
