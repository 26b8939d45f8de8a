"""The stub acquirer of the test environment: a separate process (acquirer.py), and the connector to it."""
