"""What the database itself refuses: changing or erasing events and audit entries. And a counter that may be lost."""

from typing import ClassVar

from django.db import migrations

_APPEND_ONLY = ("gateway_paymentevent", "gateway_auditentry")

_FUNCTION = """
CREATE FUNCTION gateway_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$
"""


def _trigger(table: str) -> str:
    return (
        f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION gateway_append_only()"
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0001_initial")]

    operations: ClassVar = [
        migrations.RunSQL(_FUNCTION, "DROP FUNCTION gateway_append_only() CASCADE"),
        *(migrations.RunSQL(_trigger(table), f"DROP TRIGGER append_only ON {table}") for table in _APPEND_ONLY),
        # Counts of the current second: not worth a write-ahead log, and empty after a crash is right.
        migrations.RunSQL(
            "ALTER TABLE gateway_throttlewindow SET UNLOGGED", "ALTER TABLE gateway_throttlewindow SET LOGGED"
        ),
    ]
