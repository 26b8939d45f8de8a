"""What every payment paid for and nothing needed: looking up what cannot be missing.

Merchants and channels are never deleted, which the database now sees to itself; and an event is written by the
statement that writes or finds its payment. So neither reference has to be looked up at each commit, and no row that all
payments share has to be locked.
"""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models

_KEPT = ("gateway_merchant", "gateway_channel")
_FUNCTION = """
CREATE FUNCTION gateway_never_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never deleted: make it inactive', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0028_payment_amount")]

    operations: ClassVar = [
        migrations.RunSQL(_FUNCTION, "DROP FUNCTION gateway_never_deleted() CASCADE"),
        *(
            migrations.RunSQL(
                f"CREATE TRIGGER never_deleted BEFORE DELETE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION gateway_never_deleted()",
                f"DROP TRIGGER never_deleted ON {table}",
            )
            for table in _KEPT
        ),
        migrations.AlterField(
            model_name="payment",
            name="merchant",
            field=models.ForeignKey(
                db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
            ),
        ),
        migrations.AlterField(
            model_name="payment",
            name="channel",
            field=models.ForeignKey(
                db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.channel"
            ),
        ),
        migrations.AlterField(
            model_name="paymentevent",
            name="payment",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="events",
                to="gateway.payment",
            ),
        ),
    ]
