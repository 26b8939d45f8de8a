"""What the models cannot say, and the guards of their Meta (gateway.db.guards)."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import migrations
from pgtrigger.compiler import Trigger
from pgtrigger.migrations import AddTrigger

from gateway.db.guards import GuardSql

# Rows that live for milliseconds or days: with the default, vacuum waits until a fifth of the table is dead, and every
# query of the queue reads the dead ones.
_QUEUES = (
    "gateway_openpayment",
    "gateway_suspension",
    "gateway_idempotencykey",
    "gateway_throttlewindow",
    "gateway_cardtestingcount",
    "gateway_webhookdelivery",
)
_VACUUM_SOON = "SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)"
_VACUUM_AS_EVER = "RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay)"

# Counts of the current moment: not worth a write-ahead log, and empty after a crash is right.
_UNLOGGED = ("gateway_throttlewindow", "gateway_cardtestingcount")


def remember_environment(apps: Any, editor: Any) -> None:
    """The environment the database belongs to, for good: a function, so that there is no row that could be changed.
    Read by gateway.db.environment alone."""
    name = "live" if settings.IS_LIVE else "test"
    editor.execute(
        f"CREATE FUNCTION gateway_environment() RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$SELECT '{name}'$$"
    )


def forget_environment(apps: Any, editor: Any) -> None:
    editor.execute("DROP FUNCTION gateway_environment()")


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0001_initial")]

    operations: ClassVar = [
        AddTrigger(
            model_name="auditentry",
            trigger=Trigger(
                name="append_only",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="9fd647945aa8e2a0553b1bb6263f1255e051c11d",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_08697",
                    table="gateway_auditentry",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="auditentry",
            trigger=Trigger(
                name="never_emptied",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="83190c464f4c962da9a5367ca3b022ece476d241",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_6e9e7",
                    table="gateway_auditentry",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="merchant",
            trigger=Trigger(
                name="never_deleted",
                sql=GuardSql(
                    func="RAISE EXCEPTION 'rows of % are never deleted: make it inactive', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="434bd05f78591dd17b25bd56098422ec98b7ae45",
                    operation="DELETE",
                    pgid="pgtrigger_never_deleted_5b66a",
                    table="gateway_merchant",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="channel",
            trigger=Trigger(
                name="never_deleted",
                sql=GuardSql(
                    func="RAISE EXCEPTION 'rows of % are never deleted: make it inactive', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="7e8c8d695494bddbaa07403ce80599ac567dfbc4",
                    operation="DELETE",
                    pgid="pgtrigger_never_deleted_5ff24",
                    table="gateway_channel",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="paymentevent",
            trigger=Trigger(
                name="append_only",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="c9d31e9ef99cd81f5a201cdb5be0edf954ba3515",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_560ef",
                    table="gateway_paymentevent",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="paymentevent",
            trigger=Trigger(
                name="never_emptied",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="33c862883537b765f741d836f43be32a073c864a",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_fe101",
                    table="gateway_paymentevent",
                    when="BEFORE",
                ),
            ),
        ),
        *(
            migrations.RunSQL(f"ALTER TABLE {table} SET UNLOGGED", f"ALTER TABLE {table} SET LOGGED")
            for table in _UNLOGGED
        ),
        *(
            migrations.RunSQL(f"ALTER TABLE {table} {_VACUUM_SOON}", f"ALTER TABLE {table} {_VACUUM_AS_EVER}")
            for table in _QUEUES
        ),
        # Each attempt updates its delivery's row: room on its page, so that no index has to follow.
        migrations.RunSQL(
            "ALTER TABLE gateway_webhookdelivery SET (fillfactor = 70)",
            "ALTER TABLE gateway_webhookdelivery RESET (fillfactor)",
        ),
        migrations.RunSQL(
            "INSERT INTO gateway_fanoutposition (id, position, gaps) VALUES (1, 0, '[]')",
            "DELETE FROM gateway_fanoutposition",
        ),
        migrations.RunPython(remember_environment, forget_environment),
    ]
