"""The edge of the API: HTTP in, JSON out. The only user of DRF."""
