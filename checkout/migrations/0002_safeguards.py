"""What the models cannot say (result calls are a queue, whose rows live for half an hour), and the guard of their
Meta (gateway.db.guards)."""

from typing import ClassVar

from django.db import migrations
from pgtrigger.compiler import Trigger
from pgtrigger.migrations import AddTrigger

from gateway.db.guards import GuardSql


class Migration(migrations.Migration):
    dependencies: ClassVar = [("checkout", "0001_initial")]

    operations: ClassVar = [
        AddTrigger(
            model_name="paymentlink",
            trigger=Trigger(
                name="never_deleted",
                sql=GuardSql(
                    func="RAISE EXCEPTION 'rows of % are never deleted: make it inactive', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="afcb36554aaf05ea5d39bcac942f8dd15f9c1940",
                    operation="DELETE",
                    pgid="pgtrigger_never_deleted_80ecd",
                    table="checkout_paymentlink",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.RunSQL(
            "ALTER TABLE checkout_resultcall"
            " SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)",
            "ALTER TABLE checkout_resultcall RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay)",
        ),
    ]
