"""The command line `tollhouse`."""
