"""3-D Secure 2: the 3DS server with its authentications, and the directory server it asks.

Messages and codes are in gateway.threeds_protocol, the simulated issuer in gateway.connectors.simulator.acs. Nothing
here knows payments; they call it with plain values.
"""
