"""What a node has: interfaces, HCAs, GPUs, limits; read from /sys and /proc."""
