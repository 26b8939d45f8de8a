"""Django's backend for PostgreSQL, whose sessions the threads of a web process share."""
