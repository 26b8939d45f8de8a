"""Hours of mixed load, and what every process, connection, table and folder of the product is like meanwhile."""
