"""The descriptor of a channel, and agreements that were brought along: their acquirers are told what was brought.

Until now an agreement whose brought reference had not the shape of a card scheme's id carried the reference of our own
check of the account.
"""

from typing import ClassVar

from django.db import migrations, models

# An agreement that a payment made has its id.
_AS_BROUGHT = """
UPDATE gateway_agreement a
SET network_reference = coalesce(
        p.request -> 'recurringMigration' ->> 'connectorTxId1', p.request -> 'recurringMigration' ->> 'connectorTxId2',
        p.request -> 'recurringMigration' ->> 'connectorTxId3', ''
    )
FROM gateway_payment p WHERE p.id = a.id AND a.registration IS NOT NULL AND jsonb_exists(p.request, 'recurringMigration')
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0034_sign_in_by_libraries")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="channel",
            name="descriptor",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The statement text of payments that are sent without one; empty: the merchant's name.",
                max_length=127,
            ),
        ),
        migrations.AlterField(
            model_name="agreement",
            name="network_reference",
            field=models.CharField(db_default="", default="", max_length=128),
        ),
        migrations.RunSQL(_AS_BROUGHT, migrations.RunSQL.noop, elidable=True),
    ]
