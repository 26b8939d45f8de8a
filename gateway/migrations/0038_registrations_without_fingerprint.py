"""Nothing looked for a registration by its number: the column of its fingerprint goes."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0037_links_of_single_sign_on_name_their_issuer")]

    operations: ClassVar = [migrations.RemoveField("registration", "means_fingerprint")]
