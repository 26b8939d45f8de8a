"""The card-data canary: card numbers and CVVs that nothing else has are sent through every door and every fault of a
real server, and then looked for wherever anything is written. Source: design goals R8."""
