"""EMV 3-D Secure as data: messages and their fields, networks and ECI, the meaning of transStatus.

Pure: no models, no I/O.
"""
