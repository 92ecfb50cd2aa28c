"""What the user wrote, resolved and checked; the only user of OmegaConf."""
