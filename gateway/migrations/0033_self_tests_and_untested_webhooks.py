"""Results of the test data's self-tests; and webhook endpoints whose new address has not answered a test message."""

from typing import Any, ClassVar

from django.db import migrations, models

_ADDRESS_CHANGED = "the address or the form was changed"


def mark(apps: Any, editor: Any) -> None:
    """Those that wait for such an answer already."""
    endpoints = apps.get_model("gateway", "WebhookEndpoint").objects
    endpoints.filter(state="paused", probe_at=None, reason__startswith=_ADDRESS_CHANGED).update(untested=True)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0032_people_and_tokens")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="SelfTest",
            fields=[
                ("row", models.CharField(max_length=120, primary_key=True, serialize=False)),
                ("fault", models.CharField(default="", max_length=500)),
                ("at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.AddField(
            model_name="webhookendpoint",
            name="untested",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.RunPython(mark, migrations.RunPython.noop, elidable=True),
    ]
