"""What happened to a case is not emptied either: the row trigger of 0002 says nothing of TRUNCATE."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("chargebacks", "0002_safeguards")]

    operations: ClassVar = [
        migrations.RunSQL(
            "CREATE TRIGGER never_emptied BEFORE TRUNCATE ON chargebacks_caseevent "
            "FOR EACH STATEMENT EXECUTE FUNCTION gateway_append_only()",
            "DROP TRIGGER never_emptied ON chargebacks_caseevent",
        )
    ]
