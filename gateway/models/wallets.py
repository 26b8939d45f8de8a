"""Mobile wallets: the keys of a channel, and the tokens that were used. Source: Part A, Mobile wallets."""

from __future__ import annotations

from django.db import models

from gateway.core import identifiers
from gateway.models.entities import Channel, Merchant


class WalletKey(models.Model):
    """A private key that decrypts one wallet's tokens on one channel. Several may be active while keys rotate.

    ``key_sealed``: JSON with ``private`` (PEM), and for a test key ``maker`` (PEM), which signs test tokens. ``facts``
    are public: what else decryption needs (gateway.wallets.keys). ``is_test_key``: a test key made here, not a
    wallet's; live ignores it.
    """

    class Wallet(models.TextChoices):
        WALLET1 = "wallet1", "Mobile wallet 1 (EC_v1, RSA_v1)"
        WALLET2 = "wallet2", "Mobile wallet 2 (ECv1, ECv2)"
        WALLET3 = "wallet3", "Mobile wallet 3 (JWE)"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="wallet_keys")
    wallet = models.CharField(max_length=7, choices=Wallet)
    name = models.CharField(max_length=128, blank=True)
    key_hash = models.CharField(max_length=44, editable=False, help_text="SHA-256 of the public key, base64.")
    facts = models.JSONField(default=dict)
    key_sealed = models.BinaryField()
    is_test_key = models.BooleanField(default=False, editable=False)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["channel_id", "wallet", "-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["channel", "wallet", "key_hash"], name="wallet_key_once"),
            models.CheckConstraint(
                condition=models.Q(wallet__in=["wallet1", "wallet2", "wallet3"]), name="wallet_key_wallet_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name or f"{self.wallet} {self.key_hash[:8]}"


class UsedWalletToken(models.Model):
    """A token that began a payment: it cannot begin another one of this merchant. ``digest``: SHA-256 of the token's
    own id. After ``until``, real time, the token is refused by its age, and the row may be deleted."""

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    digest = models.BinaryField(max_length=32)
    payment = models.UUIDField()
    seen_at = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["merchant", "digest"], name="wallet_token_once")]
        indexes = [models.Index(fields=["until"], name="wallet_token_until")]
