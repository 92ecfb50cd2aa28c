"""NCCL's own log, read: lines, facts, causes."""
