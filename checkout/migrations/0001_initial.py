import checkout.models
import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import gateway.core.identifiers
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("gateway", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="PaymentLink",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=checkout.models.random_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("description", models.CharField(blank=True, default="", max_length=200)),
                ("request", models.JSONField(default=dict)),
                ("amount", models.DecimalField(decimal_places=2, max_digits=18, null=True)),
                ("currency", models.CharField(max_length=3)),
                ("min_amount", models.DecimalField(decimal_places=2, max_digits=18, null=True)),
                ("max_amount", models.DecimalField(decimal_places=2, max_digits=18, null=True)),
                ("max_payments", models.IntegerField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("deactivated_at", models.DateTimeField(null=True)),
                ("version", models.IntegerField(default=1)),
                ("created_at", models.DateTimeField()),
                ("created_by", models.CharField(blank=True, default="", max_length=150)),
                (
                    "channel",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.channel"
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["merchant", "-created_at"], name="payment_link_merchant_time")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("amount__gt", 0), ("max_amount", None), ("min_amount", None)),
                            models.Q(
                                ("amount", None), ("max_amount__gte", models.F("min_amount")), ("min_amount__gt", 0)
                            ),
                            _connector="OR",
                        ),
                        name="payment_link_amount",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_payments", None), ("max_payments__gte", 1), _connector="OR"),
                        name="payment_link_max_payments",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Checkout",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=checkout.models.random_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("node", models.CharField(default=checkout.models.node, editable=False, max_length=15)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.channel"
                    ),
                ),
                (
                    "kind",
                    models.CharField(choices=[("payment", "Payment"), ("registration", "Registration")], max_length=12),
                ),
                ("request", models.JSONField(default=dict)),
                ("request_sealed", models.BinaryField(null=True)),
                (
                    "payment",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.payment",
                    ),
                ),
                ("attempts", models.SmallIntegerField(default=0)),
                ("version", models.IntegerField(default=1)),
                ("hidden_brands", models.JSONField(default=dict)),
                (
                    "parts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), db_default=[], default=list, size=None
                    ),
                ),
                ("rest", models.DecimalField(decimal_places=2, max_digits=18, null=True)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("fetched_at", models.DateTimeField(null=True)),
                (
                    "link",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="checkouts",
                        to="checkout.paymentlink",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["merchant", "-created_at"], name="checkout_merchant_time"),
                    models.Index(
                        condition=models.Q(("request_sealed__isnull", False)),
                        fields=["expires_at"],
                        name="checkout_sealed",
                    ),
                    models.Index(
                        condition=models.Q(("link__isnull", False)), fields=["link", "payment"], name="checkout_of_link"
                    ),
                    models.Index(
                        condition=models.Q(("attempts", 0), ("link__isnull", False)),
                        fields=["expires_at"],
                        name="checkout_unused_of_link",
                    ),
                    models.Index(
                        condition=models.Q(("attempts", 0), ("link__isnull", True)),
                        fields=["expires_at"],
                        name="checkout_unused",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("rest", None), ("rest__gt", 0), _connector="OR"),
                        name="checkout_rest_positive",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ResultCall",
            fields=[
                (
                    "payment",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="result_call",
                        serialize=False,
                        to="gateway.payment",
                    ),
                ),
                (
                    "checkout",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="result_calls",
                        to="checkout.checkout",
                    ),
                ),
                ("due_at", models.DateTimeField(db_index=True)),
                ("called_at", models.DateTimeField(null=True)),
                ("attempts", models.SmallIntegerField(db_default=0, default=0)),
                ("lease_until", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="CallAttempt",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "payment",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="call_attempts",
                        to="gateway.payment",
                    ),
                ),
                (
                    "checkout",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="checkout.checkout",
                    ),
                ),
                ("number", models.SmallIntegerField()),
                ("at", models.DateTimeField()),
                ("status", models.SmallIntegerField(null=True)),
                ("duration_ms", models.IntegerField()),
                ("failure", models.CharField(blank=True, default="", max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name="OfferRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "merchant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="offer_rules", to="gateway.merchant"
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="offer_rules",
                        to="gateway.channel",
                    ),
                ),
                ("position", models.PositiveSmallIntegerField(default=100)),
                ("name", models.CharField(max_length=64)),
                (
                    "action",
                    models.CharField(
                        choices=[("hide", "do not offer"), ("show", "offer")], default="hide", max_length=4
                    ),
                ),
                (
                    "brands",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), blank=True, default=list, size=None
                    ),
                ),
                (
                    "conditions",
                    models.JSONField(blank=True, default=dict, validators=[checkout.models.validate_offer_conditions]),
                ),
                ("reason", models.CharField(blank=True, max_length=200)),
                ("active", models.BooleanField(default=True)),
            ],
            options={
                "ordering": ["merchant_id", "position", "id"],
                "constraints": [
                    models.UniqueConstraint(fields=("merchant", "name"), name="offer_rule_name"),
                    models.CheckConstraint(
                        condition=models.Q(("action__in", ["hide", "show"])), name="offer_rule_action_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WalletProvider",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="wallet_providers",
                        to="gateway.channel",
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
                ("settings", models.JSONField(default=dict)),
                ("identity_sealed", models.BinaryField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("channel", "wallet"), name="wallet_provider_once"),
                    models.CheckConstraint(
                        condition=models.Q(("wallet__in", ["wallet1", "wallet2", "wallet3"])),
                        name="wallet_provider_wallet_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PageSnapshot",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                (
                    "channel",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="gateway.channel"
                    ),
                ),
                ("facts", models.JSONField()),
                ("changes", models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name="PageReview",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "snapshot",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reviews",
                        to="checkout.pagesnapshot",
                    ),
                ),
                ("merchant", models.UUIDField(null=True)),
                ("by", models.CharField(max_length=150)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("snapshot", "merchant"), name="page_review_once", nulls_distinct=False
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyViolation",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("page", models.CharField(max_length=300)),
                ("directive", models.CharField(max_length=40)),
                ("blocked", models.CharField(max_length=300)),
                ("count", models.BigIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField(db_index=True)),
                ("reporter", models.CharField(default="", editable=False, max_length=16)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("page", "directive", "blocked"), name="policy_violation_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="PaymentPageStyle",
            fields=[
                (
                    "channel",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="gateway.channel",
                    ),
                ),
                (
                    "accent",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Buttons, such as #0f766e.",
                        max_length=7,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^#[0-9a-fA-F]{6}$", "Give a colour as #rrggbb, such as #0f766e."
                            )
                        ],
                    ),
                ),
                (
                    "header",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The ground of name and logo, such as #ffffff.",
                        max_length=7,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^#[0-9a-fA-F]{6}$", "Give a colour as #rrggbb, such as #0f766e."
                            )
                        ],
                    ),
                ),
                ("logo", models.BinaryField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="ReceiptMail",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("to", models.CharField(blank=True, max_length=254)),
                ("language", models.CharField(max_length=2)),
                ("due_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[("DUE", "to be sent"), ("SENT", "sent"), ("GIVEN_UP", "given up")],
                        db_default="DUE",
                        default="DUE",
                        max_length=8,
                    ),
                ),
                ("tries", models.SmallIntegerField(db_default=0, default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "checkout",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="receipt_mails",
                        to="checkout.checkout",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("state", "DUE")), fields=["due_at"], name="receipt_mail_due")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["DUE", "SENT", "GIVEN_UP"])), name="receipt_mail_state_known"
                    )
                ],
            },
        ),
    ]
