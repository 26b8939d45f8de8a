"""The database remembers whether it is of the test or the live environment: the one that it was first migrated in.

A function without a table: nothing but gateway.db.environment asks it, and there is no row that could be changed or go.
"""

from typing import Any, ClassVar

from django.conf import settings
from django.db import migrations


def remember(apps: Any, editor: Any) -> None:
    name = "live" if settings.IS_LIVE else "test"
    editor.execute(
        f"CREATE FUNCTION gateway_environment() RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$SELECT '{name}'$$"
    )


def forget(apps: Any, editor: Any) -> None:
    editor.execute("DROP FUNCTION gateway_environment()")


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0030_rising_indexes")]

    operations: ClassVar = [migrations.RunPython(remember, forget, elidable=False)]
