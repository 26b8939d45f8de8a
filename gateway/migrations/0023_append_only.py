"""Events and audit entries are not emptied either: the row triggers of 0002 say nothing of TRUNCATE."""

from typing import ClassVar

from django.db import migrations

_TABLES = ("gateway_paymentevent", "gateway_auditentry")


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0022_processor_events")]

    operations: ClassVar = [
        migrations.RunSQL(
            f"CREATE TRIGGER never_emptied BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION gateway_append_only()",
            f"DROP TRIGGER never_emptied ON {table}",
        )
        for table in _TABLES
    ]
