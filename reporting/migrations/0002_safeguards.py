"""The guards of the models' Meta (gateway.db.guards)."""

from typing import ClassVar

from django.db import migrations
from pgtrigger.compiler import Trigger
from pgtrigger.migrations import AddTrigger

from gateway.db.guards import GuardSql


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reporting", "0001_initial")]

    operations: ClassVar = [
        AddTrigger(
            model_name="monthclosing",
            trigger=Trigger(
                name="never_deleted",
                sql=GuardSql(
                    func="RAISE EXCEPTION 'rows of % are never deleted: make it inactive', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="a0d3a97fd4cf0a99cd60ab20591b6f8c6dc3d7a7",
                    operation="DELETE",
                    pgid="pgtrigger_never_deleted_41653",
                    table="reporting_monthclosing",
                    when="BEFORE",
                ),
            ),
        ),
    ]
