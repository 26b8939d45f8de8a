"""What the models cannot say: result calls are a queue, whose rows live for half an hour."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("checkout", "0001_initial")]

    operations: ClassVar = [
        migrations.RunSQL(
            "ALTER TABLE checkout_resultcall"
            " SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)",
            "ALTER TABLE checkout_resultcall RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay)",
        )
    ]
