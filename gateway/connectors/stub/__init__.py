"""The bundled acquirer of the test environment: a process of its own (acquirer.py), and the connector that asks it."""
