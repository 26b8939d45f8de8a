"""Mobile wallets: the keys of channels, and the tokens that were used."""

from typing import ClassVar

import django.db.models.deletion
import gateway.core.identifiers
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("gateway", "0004_threeds"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="WalletKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "wallet",
                    models.CharField(
                        choices=[
                            ("wallet1", "Mobile wallet 1 (EC_v1, RSA_v1)"),
                            ("wallet2", "Mobile wallet 2 (ECv1, ECv2)"),
                            ("wallet3", "Mobile wallet 3 (JWE)"),
                        ],
                        max_length=7,
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=128)),
                (
                    "key_hash",
                    models.CharField(editable=False, help_text="SHA-256 of the public key, base64.", max_length=44),
                ),
                ("facts", models.JSONField(default=dict)),
                ("key_sealed", models.BinaryField()),
                ("made", models.BooleanField(default=False, editable=False)),
                ("active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="wallet_keys", to="gateway.channel"
                    ),
                ),
            ],
            options={
                "ordering": ["channel_id", "wallet", "-created_at"],
                "constraints": [
                    models.UniqueConstraint(fields=("channel", "wallet", "key_hash"), name="wallet_key_once"),
                    models.CheckConstraint(
                        condition=models.Q(("wallet__in", ["wallet1", "wallet2", "wallet3"])),
                        name="wallet_key_wallet_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WalletTokenSeen",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.BinaryField(max_length=32)),
                ("payment", models.UUIDField()),
                ("seen_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["until"], name="wallet_token_until")],
                "constraints": [models.UniqueConstraint(fields=("merchant", "digest"), name="wallet_token_once")],
            },
        ),
    ]
