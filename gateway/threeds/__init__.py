"""3-D Secure 2: the 3DS server, the directory server it asks, and a simulated access control server (ACS).

Pure: networks, messages, trans_status, outcome, simulated_acs. With rows: server, authentications. Nothing here knows
payments; they call it with plain values.
"""
