"""When a card's count of exemptions was used last; a reversal that failed at its processor undoes nothing."""

from importlib import import_module

import django.db.models.functions.datetime
from django.db import migrations, models

_BEFORE = import_module("gateway.migrations.0002_safeguards")._DERIVE_CHAIN_STATE.replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
_UNDONE = "WHERE type = 'RV' AND followed <> 'PA')"
_DERIVE_CHAIN_STATE = _BEFORE.replace(_UNDONE, "WHERE type = 'RV' AND followed <> 'PA' AND NOT returned)")
assert _DERIVE_CHAIN_STATE != _BEFORE


class Migration(migrations.Migration):
    dependencies = [("gateway", "0002_safeguards")]

    operations = [
        migrations.AddField(
            model_name="exemptioncount",
            name="used_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AddIndex(
            model_name="exemptioncount",
            index=models.Index(fields=["used_at"], name="exemption_count_used"),
        ),
        migrations.RunSQL(_DERIVE_CHAIN_STATE, _BEFORE),
    ]
