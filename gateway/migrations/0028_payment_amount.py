# Summaries of amounts for searches; docs/decisions/0025-the-clerks-pages.md.

import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("gateway", "0027_limits_of_a_day"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="payment",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True,
                fields=["amount", "created_at"],
                name="payment_amount",
                opclasses=["numeric_bloom_ops(n_distinct_per_range=320)", "timestamptz_minmax_ops"],
                pages_per_range=32,
            ),
        ),
    ]
