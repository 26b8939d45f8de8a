"""An acquirer account is named by channel, connector and the merchant's id there: once.

Payments keep these three, so of two accounts that share them one was never asked, and nobody but its owner knows which
of the two holds the right host and keys. So nothing is decided here: twins are told of, and stop the migration.
"""

from typing import Any, ClassVar

from django.db import migrations, models
from django.db.models import Count

_NAMED = ("channel", "connector", "acquirer_merchant_id")
_MOST_TOLD = 20


def refuse_twins(apps: Any, schema_editor: Any) -> None:
    accounts = apps.get_model("gateway", "AcquirerAccount").objects
    twins = accounts.values(*_NAMED).order_by(*_NAMED).annotate(number=Count("id")).filter(number__gt=1)
    found = []
    for twin in twins[:_MOST_TOLD]:
        rows = accounts.filter(**{name: twin[name] for name in _NAMED}).order_by("-active", "id")
        asked, *others = (str(row.id) for row in rows)
        found.append(
            f"channel {twin['channel']}, {twin['connector']}, merchant's id {twin['acquirer_merchant_id']!r}:"
            f" payments are sent to {asked}, never to {', '.join(others)}"
        )
    if found:
        raise RuntimeError(
            "These acquirer accounts exist more than once:\n  " + "\n  ".join(found) + "\n"  # noqa: S608 - for people
            "See that the one that payments are sent to is as it should be (host, keys, brands, currencies), move the "
            "routing rules of the others to it, and name the others anew, for each:\n"
            "  UPDATE gateway_acquireraccount SET active = false, acquirer_merchant_id = 'twin of …' WHERE id = '…';\n"
            "Then migrate again. Nothing was changed."
        )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0024_batches")]

    operations: ClassVar = [
        migrations.RunPython(refuse_twins, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="acquireraccount",
            constraint=models.UniqueConstraint(fields=_NAMED, name="acquirer_account_once"),
        ),
    ]
