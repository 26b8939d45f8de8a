"""Passwords, second factors and recovery codes are django-allauth's; what it must keep secret is sealed in rows here."""

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import gateway.core.identifiers


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("gateway", "0033_self_tests_and_untested_webhooks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.DeleteModel(name="RecoveryCode"),
        migrations.DeleteModel(name="SecondFactor"),
        migrations.CreateModel(
            name="FactorSecret",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("sealed", models.BinaryField()),
            ],
            options={
                "verbose_name": "secret of a second factor",
                "verbose_name_plural": "secrets of second factors",
            },
        ),
        migrations.CreateModel(
            name="UsedPassword",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("hashed", models.CharField(editable=False, max_length=255)),
                ("at", models.DateTimeField(editable=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="used_passwords",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["user", "-at"], name="used_password_user_time")]},
        ),
    ]
