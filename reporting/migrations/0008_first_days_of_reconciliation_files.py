"""The day of a merchant's first reconciliation file, by their own clock, is kept when something is first settled."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("gateway", "0036_mask_card_data"),
        ("reporting", "0007_payments_not_settled"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="ReconciliationStart",
            fields=[
                (
                    "merchant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name="+",
                        serialize=False, to="gateway.merchant",
                    ),
                ),
                ("day", models.DateField()),
                ("offset", models.DurationField()),
            ],
        ),
    ]  # fmt: skip
