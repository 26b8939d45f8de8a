"""The guards of the models' Meta (gateway.db.guards): what happened to a case is append-only."""

from typing import ClassVar

from django.db import migrations
from pgtrigger.compiler import Trigger
from pgtrigger.migrations import AddTrigger

from gateway.db.guards import GuardSql


class Migration(migrations.Migration):
    dependencies: ClassVar = [("chargebacks", "0001_initial")]

    operations: ClassVar = [
        AddTrigger(
            model_name="caseevent",
            trigger=Trigger(
                name="append_only",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="af40b0f30f4f8a2415247d58de5654c630f15001",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_8f787",
                    table="chargebacks_caseevent",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="caseevent",
            trigger=Trigger(
                name="never_emptied",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="37782a2fa12d53f39e7eabd7d4df5e2ca2928922",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_f0cd8",
                    table="chargebacks_caseevent",
                    when="BEFORE",
                ),
            ),
        ),
    ]
