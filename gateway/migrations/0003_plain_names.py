"""Columns get names that say what they hold."""

from importlib import import_module

from django.db import migrations, models

# PostgreSQL keeps the function as text, which names the column.
_BEFORE = import_module("gateway.migrations.0002_safeguards")._DERIVE_CHAIN_STATE.replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
_SINCE = _BEFORE.replace("m.approved,", "m.approved_amount,")


class Migration(migrations.Migration):
    dependencies = [("gateway", "0002_safeguards")]

    operations = [
        migrations.RemoveConstraint("payment", "payment_approved_has_amount"),
        migrations.RenameField("payment", old_name="approved", new_name="approved_amount"),
        migrations.AddConstraint(
            "payment",
            models.CheckConstraint(
                condition=~models.Q(status="APPROVED") | models.Q(approved_amount__isnull=False),
                name="payment_approved_has_amount",
            ),
        ),
        migrations.RunSQL(_SINCE, _BEFORE),
        migrations.RenameField("risktrialpayment", "was", "original_outcome"),
        migrations.RenameField("risktrialpayment", "would", "trial_outcome"),
        migrations.RenameField("risktrialpayment", "held", "matching_rules"),
    ]
