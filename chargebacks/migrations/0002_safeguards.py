"""What happened to a case is append-only. And an index of the few payments that are chargebacks or their reversals:
both of its columns never change, so that no other payment ever pays for it."""

from typing import ClassVar

from django.db import migrations

_INDEX = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_chargeback ON gateway_payment (id)"
    " WHERE payment_type IN ('CB', 'CR')"
)


class Migration(migrations.Migration):
    atomic = False
    dependencies: ClassVar = [("chargebacks", "0001_chargebacks")]

    operations: ClassVar = [
        migrations.RunSQL(
            "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON chargebacks_caseevent "
            "FOR EACH ROW EXECUTE FUNCTION gateway_append_only()",
            "DROP TRIGGER append_only ON chargebacks_caseevent",
        ),
        migrations.RunSQL(_INDEX, "DROP INDEX CONCURRENTLY IF EXISTS payment_chargeback"),
    ]
