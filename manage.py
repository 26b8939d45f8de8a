#!/usr/bin/env python
"""Django's command line. `make manage ARGS="…"` runs it with the embedded database and broker."""

import os
import shlex
import sys

NEEDED = ("DATABASE_URL", "DJANGO_SECRET_KEY")


def main(arguments: list[str]) -> int:
    """Exit code 0, or 2 where this Python or this environment is not the one of an installation, said in words."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.conf import settings
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError as fault:
        return refuse(f"{sys.executable} has no {fault.name}: it is not the Python that Tollhouse is installed in.")
    try:
        settings.INSTALLED_APPS  # noqa: B018 - reads the settings
    except ImproperlyConfigured as fault:
        missing = [name for name in NEEDED if not os.environ.get(name)]
        return refuse(f"Not set in the environment: {', '.join(missing)}." if missing else f"The settings: {fault}")
    execute_from_command_line(arguments)
    return 0


def refuse(why: str) -> int:
    """Say what is missing, and how the same command is run."""
    command = shlex.join(sys.argv[1:]) or "help"
    if set(command) & set('"$`\\\n'):  # not without quoting that depends on the shell
        command = "…"
    sys.stderr.write(
        f"{why}\n"
        f'With the database of `make run`:   make manage ARGS="{command}"\n'
        f"With an installation of your own:  set what docs/settings.md lists, then python manage.py {command}\n"
    )
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
