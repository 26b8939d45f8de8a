"""Indexes for queries. Made beside the payments that go on: no table is locked for writing."""

from typing import ClassVar

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies: ClassVar = [("gateway", "0013_clerks")]

    operations: ClassVar = [
        AddIndexConcurrently(
            model_name="payment",
            index=models.Index(fields=["channel", "created_at"], name="payment_channel_time"),
        ),
        AddIndexConcurrently(
            model_name="payment",
            index=models.Index(
                fields=["channel", "payment_type", "created_at"],
                name="payment_channel_type",
                condition=~models.Q(payment_type__in=["DB", "PA", "CP"]),
            ),
        ),
        AddIndexConcurrently(
            model_name="payment",
            index=models.Index(
                fields=["channel", "method", "created_at"],
                name="payment_channel_method",
                condition=~models.Q(method="CC"),
            ),
        ),
    ]
