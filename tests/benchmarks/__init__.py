"""What Tollhouse costs, measured beside baselines of the same run: `python -m tests.benchmarks`."""
