"""``python -m tests.market --payments 500000 --seed 22``: the table of docs/approval.md. It needs no database."""

import os
import sys

import django

os.environ.update(
    {
        "DATABASE_URL": "postgresql://none@127.0.0.1:1/none",
        "CELERY_BROKER_URL": "memory://",
        "DJANGO_SECRET_KEY": "only-for-tests-" + "0123456789" * 4,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "GATEWAY_BASE_URL": "http://testserver",
        "GATEWAY_ENVIRONMENT": "test",
        "GATEWAY_VAULT_KEYSET_FILE": os.devnull,
    }
)
django.setup()

from tests.market.report import main  # noqa: E402 - models are imported once the settings are known

if __name__ == "__main__":
    sys.exit(main())
