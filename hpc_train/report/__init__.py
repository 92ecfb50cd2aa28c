"""What happened, read from run directories: status, history, tables; pure."""
