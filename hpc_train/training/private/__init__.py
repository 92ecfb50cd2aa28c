"""Every use of a name that Lightning, torch or torchmetrics keeps private or does not document.

Nothing else in the package may use one. `tests/training/test_private_*.py` hold each of them.
"""
