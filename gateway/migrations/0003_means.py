"""Every means of payment, not only cards; payments that wait for their shopper."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0002_safeguards")]

    operations: ClassVar = [
        migrations.RenameField("payment", "card_sealed", "means_sealed"),
        migrations.RenameField("payment", "card_fingerprint", "means_fingerprint"),
        migrations.CreateModel(
            name="Suspension",
            fields=[
                (
                    "payment",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="suspension",
                        serialize=False,
                        to="gateway.payment",
                    ),
                ),
                (
                    "stage",
                    models.CharField(
                        choices=[
                            ("authenticate", "the shopper authenticates"),
                            ("elsewhere", "the shopper is at a bank or wallet"),
                        ],
                        max_length=12,
                    ),
                ),
                ("deadline", models.DateTimeField(db_index=True)),
                ("secrets_sealed", models.BinaryField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="notification",
            name="notification_sequence",
        ),
        migrations.AddField(
            model_name="notification",
            name="registration",
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name="payment",
            name="account",
            field=models.CharField(default="", max_length=64),
        ),
        migrations.AddField(
            model_name="payment",
            name="means",
            field=models.CharField(default="", max_length=16),
        ),
        migrations.AddField(
            model_name="payment",
            name="registration",
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name="payment",
            name="resource_path",
            field=models.CharField(default="", max_length=128),
        ),
        migrations.AddConstraint(
            model_name="notification",
            constraint=models.UniqueConstraint(fields=("payment", "sequence", "kind"), name="notification_sequence"),
        ),
        migrations.RunSQL("UPDATE gateway_payment SET means = 'card' WHERE means_sealed IS NOT NULL", ""),
    ]
