"""Running it for real, tried: two web nodes, a proxy, three PostgreSQL servers, back-up, restore, live start."""
