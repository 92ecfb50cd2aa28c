"""A rank that is a script of the user's: its Trainer, its Fabric, or a loop of its own."""
