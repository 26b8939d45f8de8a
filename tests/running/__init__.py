"""Running it for real, tried: two web nodes behind a proxy, three PostgreSQL servers, back-up and restore, live start."""
