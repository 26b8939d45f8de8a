"""Our connectors against processors that others wrote: ``make external``. `make test` leaves this folder out."""
