"""3-D Secure 2: the 3DS server, the directory it asks, and the simulated access control server (ACS).

Pure: networks, messages, verdicts, acs. With rows: server. Nothing here knows payments; they call it with plain values.
"""
