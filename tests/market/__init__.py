"""By hand, ``python -m tests.market``: what each way to more approvals brings on the simulated market."""
