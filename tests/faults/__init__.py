"""Kill what runs, under load, and compare the acquirer's log with our books (goals R1 to R3; docs/faults.md)."""
