"""Names that torch.distributed has, and declares to type checkers under a private one alone."""

from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

__all__ = ["PrefixStore", "Store", "TCPStore"]
