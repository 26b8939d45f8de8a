"""The HTTP edge of the API: views, authentication, throttling, error responses. The only user of DRF."""
