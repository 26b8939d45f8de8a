"""3-D Secure: configuration of a channel, and each authentication. Functions are in gateway.threeds.

Source: Part B, 3D Secure; rulings D31 to D35.
"""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from gateway.catalogue.structures import NETWORK_KEYS
from gateway.core import identifiers
from gateway.models.entities import Channel, Merchant

MAX_REQUESTOR_CHARS = 100
MAX_SERVER_URL_CHARS = 255
MAX_ACS_URL_CHARS = 2_048
REQUESTOR_MEMBERS = ("id", "name", "acquirerBin", "acquirerMerchantId")
"""What a network or the acquirer assigned to the shop, per network."""


def validate_requestors(value: Any) -> None:
    """Raise ValidationError unless ``value`` gives a 3DS requestor's id and name for each network it names."""
    if not isinstance(value, dict):
        raise ValidationError(f"Give an object: network → {{{', '.join(REQUESTOR_MEMBERS)}}}.")
    for network, requestor in value.items():
        if network not in NETWORK_KEYS:
            raise ValidationError(f"{network} is not one of {', '.join(NETWORK_KEYS)}.")
        if (
            not isinstance(requestor, dict)
            or not set(requestor) <= set(REQUESTOR_MEMBERS)
            or not all(isinstance(text, str) and 0 < len(text) <= MAX_REQUESTOR_CHARS for text in requestor.values())
        ):
            members = ", ".join(REQUESTOR_MEMBERS)
            raise ValidationError(f"{network}: give {members}, each up to {MAX_REQUESTOR_CHARS} characters.")


class ThreeDSecureConfiguration(models.Model):
    """3-D Secure configuration of one channel. A channel without a row has the defaults; ``Channel.three_d_secure``
    says whether it authenticates at all.

    ``networks``: empty means all. ``requestors``: network → REQUESTOR_MEMBERS, as network and acquirer assigned them.
    ``server_url``: the external 3DS server (docs/connectors/threeds-server.md); ``server_secret_sealed``: the secret
    shared with it, sealed for the channel's id. Live needs both (docs/decisions/0066).
    """

    class Policy(models.TextChoices):
        PROCEED = "proceed", "go on without liability shift"
        DECLINE = "decline", "decline the payment"

    class SoftDeclinePolicy(models.TextChoices):
        DECLINE = "decline", "decline the payment with 300.100.100"
        CHALLENGE = "challenge", "challenge the shopper and authorize the payment again"

    channel = models.OneToOneField(Channel, on_delete=models.PROTECT, primary_key=True, related_name="three_ds")
    networks = ArrayField(
        models.CharField(max_length=32),
        default=list,
        blank=True,
        help_text=f"Of {', '.join(NETWORK_KEYS)}, separated by commas; empty: all.",
    )
    requestors = models.JSONField(
        default=dict,
        blank=True,
        validators=[validate_requestors],
        help_text="Network → {id, name, acquirerBin, acquirerMerchantId}; a request's own go first.",
    )
    server_url = models.CharField(
        "3DS server",
        max_length=MAX_SERVER_URL_CHARS,
        blank=True,
        default="",
        db_default="",
        help_text="Address of the external 3DS server, https://…; the live environment needs one.",
    )
    server_secret_sealed = models.BinaryField(null=True, editable=False)
    server_secret_set_at = models.DateTimeField(null=True, editable=False)
    requestor_url = models.CharField(
        "website",
        max_length=MAX_ACS_URL_CHARS,
        blank=True,
        default="",
        db_default="",
        help_text="The shop's website (threeDSRequestorURL); threeDSecure.merchant.url goes first.",
    )
    merchant_category_code = models.CharField(
        "merchant category code",
        max_length=4,
        blank=True,
        default="",
        db_default="",
        validators=[RegexValidator("^[0-9]{4}$", "Give the four digits of ISO 18245.")],
        help_text="Four digits (ISO 18245); merchant.mcc goes first.",
    )
    merchant_country = models.CharField(
        "merchant country",
        max_length=2,
        blank=True,
        default="",
        db_default="",
        validators=[RegexValidator("^[A-Z]{2}$", "Give two capital letters (ISO 3166-1).")],
        help_text="Two letters (ISO 3166-1); merchant.country goes first.",
    )
    on_unavailable = models.CharField(
        "when authentication is not available",
        max_length=8,
        choices=Policy,
        default=Policy.PROCEED,
        help_text="Card not enrolled, status U, directory not reached.",
    )
    on_attempt = models.CharField(
        "when it was only attempted", max_length=8, choices=Policy, default=Policy.PROCEED, help_text="Status A."
    )
    on_soft_decline = models.CharField(
        "when the bank wants an authentication",
        max_length=9,
        choices=SoftDeclinePolicy,
        default=SoftDeclinePolicy.DECLINE,
        db_default=SoftDeclinePolicy.DECLINE,
        help_text="Soft decline, 300.100.100, of a payment whose shopper was not challenged.",
    )
    challenge_indicator = models.CharField(
        max_length=2,
        blank=True,
        default="",
        choices=[(f"0{n}", f"0{n}") for n in range(1, 10)],
        help_text="threeDSecure.challengeIndicator where a request sends none.",
    )
    challenge_minutes = models.PositiveSmallIntegerField(
        default=10,
        validators=[MinValueValidator(5), MaxValueValidator(60)],
        help_text="How long the shopper may take; the payment is declined then.",
    )
    method = models.BooleanField(
        "method page",
        default=True,
        help_text="Load the issuer's method page in the shopper's browser, where it has one.",
    )

    class Meta:
        verbose_name = "3-D Secure configuration"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(challenge_minutes__gte=5, challenge_minutes__lte=60),
                name="threeds_challenge_minutes",
            )
        ]

    def clean(self) -> None:
        if unknown := sorted(set(self.networks) - set(NETWORK_KEYS)):
            raise ValidationError({"networks": f"Not one of {', '.join(NETWORK_KEYS)}: {', '.join(unknown)}."})

    def __str__(self) -> str:
        return f"3-D Secure: {self.channel}"


class AuthenticationStep(models.TextChoices):
    """The party that an authentication waits for."""

    METHOD = "method"
    ASKING = "asking"
    CHALLENGE = "challenge"
    DECOUPLED = "decoupled"
    DONE = "done"


class Authentication(models.Model):
    """One authentication; its id is the threeDSServerTransID. ``payment``: None for an authentication alone.
    ``attempt``: of the payment's authorization that it is for; 2 after a soft decline (gateway.payments.step_up).

    Times are the merchant's clock.

    - ``flow``: frictionless, challenge, decoupled or 3ri.
    - ``code``: the result, empty while it is open and where the payment goes on.
    - ``number_sealed``: the card number, sealed for this row until the directory server was asked.
    - ``proof_sealed``: the CAVV or AAV, sealed for this row.
    - ``scenario``: how the simulated bank treats this card.
    - ``ask``: the data of the request to the directory server, without the number.
    - ``messages``: the EMV messages, masked.
    - ``request``: the echo of an authentication alone.
    - ``server_url``: the external 3DS server that has it, empty for the simulated one.
    - ``acs_url``, ``method_url``: pages of the issuer that this server named.
    - ``challenge_indicator``: that of the request, else of the channel.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    payment = models.UUIDField(null=True)
    attempt = models.SmallIntegerField(default=1, db_default=1)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    brand = models.CharField(max_length=32)
    network = models.CharField(max_length=32)
    version = models.CharField(max_length=8, default="")
    device_channel = models.CharField(max_length=2, default="")
    category = models.CharField(max_length=2, default="")
    challenge_indicator = models.CharField(max_length=2, default="")
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    card = models.CharField("card, masked", max_length=32, default="")
    step = models.CharField(max_length=9, choices=AuthenticationStep, default=AuthenticationStep.DONE)
    flow = models.CharField(max_length=12, default="")
    scenario = models.CharField(max_length=24, default="")
    window = models.CharField(max_length=2, default="")
    server_url = models.CharField(max_length=MAX_SERVER_URL_CHARS, default="", db_default="")
    acs_url = models.CharField(max_length=MAX_ACS_URL_CHARS, default="", db_default="")
    method_url = models.CharField(max_length=MAX_ACS_URL_CHARS, default="", db_default="")
    attempts = models.PositiveSmallIntegerField(default=0)
    resends = models.PositiveSmallIntegerField(default=0)
    trans_status = models.CharField(max_length=1, default="")
    trans_status_reason = models.CharField(max_length=2, default="")
    eci = models.CharField(max_length=2, default="")
    proof_sealed = models.BinaryField(null=True)
    number_sealed = models.BinaryField(null=True)
    ds_transaction = models.CharField(max_length=36, default="")
    acs_transaction = models.CharField(max_length=36, default="")
    code = models.CharField(max_length=11, default="")
    ask = models.JSONField(default=dict)
    messages = models.JSONField(default=list)
    request = models.JSONField(default=dict)
    answer = models.JSONField(default=dict)
    return_url = models.CharField(max_length=2048, default="")
    test_mode = models.CharField(max_length=8, default="")
    request_id = models.UUIDField()
    created_at = models.DateTimeField()
    deadline = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["payment", "attempt"],
                name="authentication_payment",
                condition=models.Q(payment__isnull=False),
            ),
            models.CheckConstraint(condition=models.Q(attempt__in=(1, 2)), name="authentication_attempt"),
            models.CheckConstraint(
                condition=models.Q(step__in=AuthenticationStep.values), name="authentication_step_known"
            ),
            models.CheckConstraint(
                condition=models.Q(step="done") | models.Q(deadline__isnull=False),
                name="authentication_open_has_a_deadline",
            ),
            models.CheckConstraint(
                condition=~models.Q(step="done") | models.Q(number_sealed__isnull=True),
                name="authentication_done_keeps_no_number",
            ),
        ]
        indexes = [
            models.Index(fields=["deadline"], name="authentication_open", condition=~models.Q(step="done")),
        ]

    def __str__(self) -> str:
        return f"{self.network} {self.amount} {self.currency} ({self.trans_status or self.step})"
