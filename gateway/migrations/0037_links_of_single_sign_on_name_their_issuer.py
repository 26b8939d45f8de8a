import hashlib
from typing import Any

from django.conf import settings
from django.db import migrations

MAX_SUBJECT_CHARS = 160


def bind(apps: Any, editor: Any) -> None:
    """Links so far are of the issuer that is set now. Where none is set they cannot be told apart, and go: their users
    are found by their verified address again."""
    links = apps.get_model("socialaccount", "SocialAccount").objects.filter(provider="sso")
    issuer = settings.GATEWAY_OIDC_ISSUER
    if not issuer:
        links.delete()
        return
    prefix = hashlib.sha256(issuer.encode()).hexdigest()[:16] + ":"
    for link in links.exclude(uid__startswith=prefix):
        known = link.uid if len(link.uid) <= MAX_SUBJECT_CHARS else hashlib.sha256(link.uid.encode()).hexdigest()
        link.uid = prefix + known
        link.save(update_fields=["uid"])


class Migration(migrations.Migration):
    dependencies = [
        ("gateway", "0036_mask_card_data"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
    ]

    operations = [migrations.RunPython(bind, migrations.RunPython.noop)]
