"""A channel may switch off that card data in free text is masked before it is stored."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0035_answers")]

    operations: ClassVar = [
        migrations.AddField(
            "channel",
            "mask_card_data",
            models.BooleanField(
                db_default=True,
                default=True,
                help_text="Card numbers and security codes in free text are masked before they are stored.",
                verbose_name="mask card data",
            ),
        )
    ]
