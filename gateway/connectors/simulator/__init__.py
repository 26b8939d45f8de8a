"""The simulated bank of the test environment: card and account tables, the connector, orders with their pages (views),
and the issuer of 3-D Secure (acs)."""
