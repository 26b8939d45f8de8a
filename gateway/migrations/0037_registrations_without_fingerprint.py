"""Nothing looked for a registration by its number: the column of its fingerprint goes."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0036_mask_card_data")]

    operations: ClassVar = [migrations.RemoveField("registration", "means_fingerprint")]
