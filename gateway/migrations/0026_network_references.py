"""An agreement keeps the card scheme's own id of its first payment, where the processor told one."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0025_accounts_once")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="agreement",
            name="network_reference",
            field=models.CharField(db_default="", default="", max_length=15),
        )
    ]
