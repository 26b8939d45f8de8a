"""The command ``tollhouse`` of an installation by pip: runs the gateway, its parts, and Django's commands."""
