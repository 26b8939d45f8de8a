import datetime
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import gateway.core.identifiers
import gateway.models.access
import gateway.models.entities
import gateway.models.threeds
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "__first__"),
    ]

    operations = [
        # The default of Payment.number; the table cannot be created without it.
        migrations.RunSQL(
            sql="CREATE SEQUENCE gateway_payment_number AS bigint",
            reverse_sql="DROP SEQUENCE gateway_payment_number",
        ),
        # The same of AcquirerExchange.id.
        migrations.RunSQL(
            sql="CREATE SEQUENCE gateway_acquirer_exchange_id AS bigint",
            reverse_sql="DROP SEQUENCE gateway_acquirer_exchange_id",
        ),
        migrations.CreateModel(
            name="Psp",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.entity_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                (
                    "active",
                    models.BooleanField(default=True, help_text="An inactive entity is refused like an unknown one."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name": "PSP",
                "verbose_name_plural": "PSPs",
            },
        ),
        migrations.CreateModel(
            name="Division",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.entity_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                (
                    "active",
                    models.BooleanField(default=True, help_text="An inactive entity is refused like an unknown one."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "psp",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="divisions", to="gateway.psp"
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Merchant",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.entity_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                (
                    "active",
                    models.BooleanField(default=True, help_text="An inactive entity is refused like an unknown one."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "division",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="merchants", to="gateway.division"
                    ),
                ),
                (
                    "dispatching",
                    models.BooleanField(
                        default=False,
                        help_text="Accept the merchant's id as entityId; the channel is chosen by brand and currency.",
                    ),
                ),
                ("time_zone", models.CharField(default="UTC", max_length=64)),
                ("clock_offset", models.DurationField(default=datetime.timedelta(0), editable=False)),
            ],
        ),
        migrations.CreateModel(
            name="Channel",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.entity_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                (
                    "active",
                    models.BooleanField(default=True, help_text="An inactive entity is refused like an unknown one."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "merchant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="channels", to="gateway.merchant"
                    ),
                ),
                (
                    "position",
                    models.PositiveSmallIntegerField(default=100, help_text="Dispatching takes the lowest that fits."),
                ),
                (
                    "brands",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), blank=True, default=list, size=None
                    ),
                ),
                (
                    "currencies",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=3), blank=True, default=list, size=None
                    ),
                ),
                (
                    "brand_order",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), blank=True, db_default=[], default=list, size=None
                    ),
                ),
                (
                    "parameters",
                    models.CharField(
                        choices=[
                            ("normal", "unknown names are ignored and reported, near misses are errors"),
                            ("strict", "every unknown name is an error"),
                            ("lenient", "no unknown name is an error"),
                        ],
                        default="normal",
                        max_length=8,
                    ),
                ),
                ("three_d_secure", models.BooleanField(default=False, verbose_name="3-D Secure")),
                ("cvv_required", models.BooleanField(default=False, verbose_name="CVV required")),
                (
                    "refuse_duplicates",
                    models.BooleanField(
                        default=False, help_text="Refuse a second payment with the same merchantTransactionId."
                    ),
                ),
                (
                    "mask_card_data",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Card numbers and security codes in free text are masked before they are stored.",
                        verbose_name="mask card data",
                    ),
                ),
                (
                    "agreement_ids",
                    models.CharField(
                        choices=[
                            ("none", "initialTransactionId; an agreementId goes along when it is sent"),
                            (
                                "both",
                                "transition: initialTransactionId and agreementId, both returned and both expected",
                            ),
                            ("only", "agreementId alone"),
                        ],
                        default="none",
                        max_length=4,
                    ),
                ),
                (
                    "external_references",
                    models.BooleanField(
                        default=False,
                        help_text="Accept an initialTransactionId that is not of this gateway: agreements made at another processor.",
                    ),
                ),
                ("network_tokens", models.BooleanField(db_default=False, default=False)),
                ("account_updater", models.BooleanField(db_default=False, default=False)),
                (
                    "registration_days",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="How long a registration is kept; empty keeps it until it is deleted.",
                        null=True,
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The zone of subscription jobs, e.g. Europe/Berlin; empty: the merchant's.",
                        max_length=64,
                    ),
                ),
                (
                    "descriptor",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The statement text of payments that are sent without one; empty: the merchant's name.",
                        max_length=127,
                    ),
                ),
                (
                    "limits",
                    models.JSONField(
                        blank=True, default=dict, validators=[gateway.models.entities.validate_throttle_limits]
                    ),
                ),
                (
                    "risk_set",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Key of the rule set that screens; risk.channelId goes first.",
                        max_length=255,
                    ),
                ),
                (
                    "card_testing",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="The guard against card testing, where it differs from the settings.",
                        validators=[gateway.models.entities.validate_card_testing],
                    ),
                ),
                (
                    "authorization_days",
                    models.JSONField(
                        blank=True,
                        db_default={},
                        default=dict,
                        validators=[gateway.models.entities.validate_authorization_days],
                    ),
                ),
                (
                    "authorization_kind",
                    models.CharField(
                        choices=[
                            ("ESTIMATED", "preauthorization: the amount may change"),
                            ("FINAL", "final authorization: it will be captured as it is"),
                        ],
                        db_default="ESTIMATED",
                        default="ESTIMATED",
                        max_length=9,
                    ),
                ),
                (
                    "expired_captures",
                    models.CharField(
                        choices=[
                            ("refuse", "refused; the rest is released at expiry"),
                            ("renew", "the authorization is renewed first; nothing is released at expiry"),
                        ],
                        db_default="refuse",
                        default="refuse",
                        max_length=6,
                    ),
                ),
                (
                    "partial_approvals",
                    models.CharField(
                        choices=[
                            ("request", "asked for: the issuer is told that a part will do"),
                            ("accept", "accepted: the payment is approved with what was granted"),
                            ("collect", "held in a form: the shopper pays the rest, or has it given back"),
                            ("decline", "reversed at once: the payment is declined"),
                        ],
                        db_default="accept",
                        default="accept",
                        max_length=7,
                    ),
                ),
                (
                    "retry_timing",
                    models.CharField(
                        choices=[
                            ("table", "by the table: after 3, 5 and 7 days"),
                            ("outcomes", "by the outcomes of earlier retries"),
                        ],
                        db_default="table",
                        default="table",
                        max_length=8,
                    ),
                ),
                (
                    "reversal_hours",
                    models.PositiveSmallIntegerField(
                        db_default=24, default=24, validators=[django.core.validators.MaxValueValidator(8760)]
                    ),
                ),
                ("exemptions", models.JSONField(blank=True, db_default={}, default=dict)),
            ],
            options={
                "ordering": ["merchant_id", "position", "created_at"],
            },
        ),
        migrations.CreateModel(
            name="AcquirerAccount",
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="acquirer_accounts",
                        to="gateway.channel",
                    ),
                ),
                ("connector", models.CharField(max_length=32)),
                ("name", models.CharField(blank=True, max_length=128)),
                ("acquirer_merchant_id", models.CharField(max_length=64)),
                (
                    "brands",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), blank=True, default=list, size=None
                    ),
                ),
                (
                    "currencies",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=3), blank=True, default=list, size=None
                    ),
                ),
                ("settings", models.JSONField(blank=True, default=dict)),
                ("secrets_sealed", models.BinaryField(null=True)),
                ("secrets_set", models.JSONField(blank=True, db_default={}, default=dict, editable=False)),
                ("active", models.BooleanField(default=True)),
            ],
            options={
                "ordering": ["channel_id", "id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("channel", "connector", "acquirer_merchant_id"), name="acquirer_account_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AccessToken",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("hint", models.CharField(editable=False, max_length=4)),
                ("name", models.CharField(max_length=128)),
                (
                    "merchant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="access_tokens", to="gateway.merchant"
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="access_tokens",
                        to="gateway.channel",
                    ),
                ),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), default=gateway.models.access.all_scopes, size=None
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("created_by", models.CharField(editable=False, max_length=150)),
                ("ends_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "requested_by",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("approved_at", models.DateTimeField(editable=False, null=True)),
                ("approved_by", models.CharField(default="", editable=False, max_length=150)),
                (
                    "max_amount",
                    models.DecimalField(
                        blank=True,
                        decimal_places=2,
                        help_text="In the payment's own currency. Empty: no limit.",
                        max_digits=14,
                        null=True,
                        verbose_name="at most, one payment",
                    ),
                ),
                (
                    "max_day_amount",
                    models.DecimalField(
                        blank=True,
                        decimal_places=2,
                        help_text="All that the token moves in one currency within 24 hours. Empty: no limit.",
                        max_digits=14,
                        null=True,
                        verbose_name="at most, in 24 hours",
                    ),
                ),
                (
                    "operations",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=2), blank=True, default=list, size=None
                    ),
                ),
                (
                    "replaces",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.accesstoken",
                    ),
                ),
                ("last_used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("last_used_ip", models.GenericIPAddressField(blank=True, editable=False, null=True)),
                ("lent", models.BooleanField(db_default=False, default=False, editable=False)),
            ],
            options={
                "ordering": ["-created_at"],
                "permissions": [("issue_accesstoken", "Can issue, rotate and revoke access tokens")],
                "indexes": [models.Index(condition=models.Q(("lent", True)), fields=["ends_at"], name="token_lent")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("max_amount__isnull", True), ("max_amount__gt", 0), _connector="OR"),
                        name="token_max_amount_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_day_amount__isnull", True), ("max_day_amount__gt", 0), _connector="OR"
                        ),
                        name="token_max_day_amount_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TokenLimitUsage",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.accesstoken",
                    ),
                ),
                ("payment", models.UUIDField(null=True)),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["token", "currency", "at"], name="token_limit_usage_time")],
            },
        ),
        migrations.CreateModel(
            name="ThrottleWindow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "entity_id",
                        "operation",
                        "window_s",
                        "window",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("entity_id", models.UUIDField()),
                ("operation", models.CharField(max_length=16)),
                ("window_s", models.IntegerField()),
                ("window", models.BigIntegerField()),
                ("count", models.IntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="Payment",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "number",
                    models.BigIntegerField(
                        db_default=models.Func(models.Value("gateway_payment_number"), function="nextval")
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.merchant",
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.channel",
                    ),
                ),
                ("chain", models.UUIDField()),
                ("referenced", models.UUIDField(null=True)),
                ("payment_type", models.CharField(max_length=2)),
                ("brand", models.CharField(max_length=32)),
                ("method", models.CharField(max_length=2)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("STARTED", "Started"),
                            ("PENDING", "Pending"),
                            ("APPROVED", "Approved"),
                            ("DECLINED", "Declined"),
                            ("IN_DOUBT", "In Doubt"),
                        ],
                        max_length=8,
                    ),
                ),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("approved_amount", models.DecimalField(decimal_places=2, max_digits=14, null=True)),
                ("result_code", models.CharField(default="", max_length=11)),
                ("test_mode", models.CharField(default="", max_length=8)),
                ("merchant_transaction_id", models.CharField(default="", max_length=255)),
                ("duplicate_guard", models.CharField(max_length=255, null=True)),
                ("merchant_invoice_id", models.CharField(default="", max_length=255)),
                ("merchant_memo", models.CharField(default="", max_length=255)),
                ("request", models.JSONField(default=dict)),
                ("answer", models.JSONField(default=dict)),
                ("means", models.CharField(default="", max_length=16)),
                ("means_sealed", models.BinaryField(null=True)),
                ("means_fingerprint", models.BinaryField(null=True)),
                ("email_key", models.IntegerField(null=True)),
                ("last4_key", models.IntegerField(null=True)),
                ("registration", models.UUIDField(null=True)),
                ("agreement", models.UUIDField(null=True)),
                ("connector", models.CharField(default="", max_length=32)),
                ("connector_tx_id", models.CharField(default="", max_length=64)),
                ("acquirer_merchant_id", models.CharField(default="", max_length=64)),
                ("route", models.JSONField(null=True)),
                ("resource_path", models.CharField(default="", max_length=128)),
                ("max_captures", models.SmallIntegerField(null=True)),
                ("final", models.BooleanField(default=False)),
                ("practice", models.CharField(default="", max_length=16)),
                ("sequence", models.SmallIntegerField(default=1)),
                ("follow_ups", models.IntegerField(default=0)),
                ("request_id", models.UUIDField()),
                ("created_at", models.DateTimeField()),
                ("completed_at", models.DateTimeField(null=True)),
                ("authorization_kind", models.CharField(db_default="", default="", max_length=9)),
                ("expired_at", models.DateTimeField(null=True)),
                ("returned_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "name_keys",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), null=True, size=None),
                ),
                ("reopens_authorization", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["merchant", "created_at"], name="payment_merchant_made"),
                    models.Index(fields=["chain"], name="payment_chain"),
                    models.Index(
                        condition=models.Q(("merchant_transaction_id", ""), _negated=True),
                        fields=["merchant", "merchant_transaction_id"],
                        name="payment_merchant_tx",
                    ),
                    models.Index(fields=["channel", "created_at"], name="payment_channel_time"),
                    models.Index(
                        condition=models.Q(("payment_type__in", ["DB", "PA", "CP"]), _negated=True),
                        fields=["channel", "payment_type", "created_at"],
                        name="payment_channel_type",
                    ),
                    models.Index(
                        condition=models.Q(("method", "CC"), _negated=True),
                        fields=["channel", "method", "created_at"],
                        name="payment_channel_method",
                    ),
                    models.Index(
                        condition=models.Q(("merchant_invoice_id", ""), _negated=True),
                        fields=["merchant", "merchant_invoice_id"],
                        name="payment_merchant_invoice",
                    ),
                    models.Index(
                        condition=models.Q(("email_key__isnull", False)), fields=["email_key"], name="payment_email"
                    ),
                    models.Index(
                        condition=models.Q(("last4_key__isnull", False)), fields=["last4_key"], name="payment_last4"
                    ),
                    django.contrib.postgres.indexes.BrinIndex(
                        autosummarize=True,
                        fields=["amount", "created_at"],
                        name="payment_amount",
                        opclasses=["numeric_bloom_ops(n_distinct_per_range=320)", "timestamptz_minmax_ops"],
                        pages_per_range=32,
                    ),
                    models.Index(
                        condition=models.Q(("payment_type__in", ["CB", "CR"])), fields=["id"], name="payment_chargeback"
                    ),
                    models.Index(
                        condition=models.Q(("agreement__isnull", False)), fields=["agreement"], name="payment_agreement"
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        condition=models.Q(("name_keys__isnull", False)), fields=["name_keys"], name="payment_name"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("number",), name="payment_number"),
                    models.UniqueConstraint(
                        condition=models.Q(("duplicate_guard__isnull", False)),
                        fields=("channel", "duplicate_guard"),
                        name="payment_duplicate",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["STARTED", "PENDING", "APPROVED", "DECLINED", "IN_DOUBT"])),
                        name="payment_status_known",
                    ),
                    models.CheckConstraint(condition=models.Q(("amount__gte", 0)), name="payment_amount_not_negative"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status", "STARTED"), models.Q(("result_code", ""), _negated=True), _connector="OR"
                        ),
                        name="payment_answered_has_a_code",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "APPROVED"), _negated=True),
                            ("approved_amount__isnull", False),
                            _connector="OR",
                        ),
                        name="payment_approved_has_amount",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="OpenPayment",
            fields=[
                (
                    "payment",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="open",
                        serialize=False,
                        to="gateway.payment",
                    ),
                ),
                ("recover_at", models.DateTimeField(db_index=True)),
                ("inquiries", models.SmallIntegerField(default=0)),
                ("void_attempted", models.BooleanField(db_default=False, default=False)),
                ("trace_number", models.IntegerField(db_default=0, default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Suspension",
            fields=[
                (
                    "payment",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="suspension",
                        serialize=False,
                        to="gateway.payment",
                    ),
                ),
                (
                    "stage",
                    models.CharField(
                        choices=[
                            ("authenticate", "the shopper authenticates"),
                            ("redirect", "the shopper is at a bank or wallet"),
                            ("part", "a part is held until the rest is paid"),
                        ],
                        max_length=12,
                    ),
                ),
                ("deadline", models.DateTimeField(db_index=True)),
                ("secrets_sealed", models.BinaryField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="PaymentEvent",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "payment_id", "sequence", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "payment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="gateway.payment",
                    ),
                ),
                ("sequence", models.SmallIntegerField()),
                ("event", models.CharField(max_length=16)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("STARTED", "Started"),
                            ("PENDING", "Pending"),
                            ("APPROVED", "Approved"),
                            ("DECLINED", "Declined"),
                            ("IN_DOUBT", "In Doubt"),
                        ],
                        max_length=8,
                    ),
                ),
                ("result_code", models.CharField(default="", max_length=11)),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="AcquirerExchange",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "payment_id", "id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "id",
                    models.BigIntegerField(
                        db_default=models.Func(models.Value("gateway_acquirer_exchange_id"), function="nextval"),
                        editable=False,
                    ),
                ),
                (
                    "payment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="exchanges",
                        to="gateway.payment",
                    ),
                ),
                ("connector", models.CharField(max_length=32)),
                ("kind", models.CharField(max_length=8)),
                ("sent", models.JSONField()),
                ("received", models.JSONField(null=True)),
                ("duration_ms", models.IntegerField()),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="ClerkLimitUsage",
            fields=[
                ("payment", models.UUIDField(primary_key=True, serialize=False)),
                ("user", models.BigIntegerField()),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.merchant",
                    ),
                ),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["user", "merchant", "at"], name="clerk_limit_usage_time")],
            },
        ),
        migrations.CreateModel(
            name="ClerkLimitCounter",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("user", models.BigIntegerField()),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.merchant",
                    ),
                ),
                ("moves", models.BigIntegerField(default=0)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "merchant"), name="clerk_limit_counter_once")],
            },
        ),
        migrations.CreateModel(
            name="BackgroundWork",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("kind", models.CharField(max_length=32)),
                ("title", models.CharField(max_length=200)),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("parameters", models.JSONField(default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("WAITING", "waits"),
                            ("RUNNING", "runs"),
                            ("DONE", "done"),
                            ("FAILED", "failed"),
                            ("CANCELLED", "cancelled"),
                        ],
                        default="WAITING",
                        max_length=9,
                    ),
                ),
                ("done", models.BigIntegerField(default=0)),
                ("total", models.BigIntegerField(null=True)),
                ("cursor", models.JSONField(default=dict)),
                ("slices", models.IntegerField(default=0)),
                ("failures", models.SmallIntegerField(default=0)),
                ("file", models.CharField(default="", max_length=200)),
                ("message", models.CharField(default="", max_length=500)),
                ("lease_until", models.DateTimeField(null=True)),
                ("asked_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "background work",
                "verbose_name_plural": "background work",
                "indexes": [
                    models.Index(fields=["owner", "-asked_at"], name="work_owner_time"),
                    models.Index(
                        condition=models.Q(("state__in", ["WAITING", "RUNNING"])),
                        fields=["asked_at"],
                        name="work_to_do",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TraceSequence",
            fields=[
                ("terminal", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("last", models.IntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="CaptureBatch",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("merchant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant")),
                (
                    "channel",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.channel"
                    ),
                ),
                ("acquirer_merchant_id", models.CharField(max_length=64)),
                ("number", models.IntegerField()),
                ("currency", models.CharField(max_length=3)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("PRESENTING", "captures are sent"),
                            ("CLOSING", "sums are compared"),
                            ("UPLOADING", "captures are sent again"),
                            ("BALANCED", "in balance"),
                            ("DIFFERS", "sums differ"),
                        ],
                        default="PRESENTING",
                        max_length=10,
                    ),
                ),
                ("count", models.IntegerField()),
                ("total", models.DecimalField(decimal_places=2, max_digits=18)),
                ("round", models.SmallIntegerField(default=0)),
                ("asked", models.BooleanField(default=False)),
                ("trace_number", models.IntegerField(default=0)),
                ("answer", models.JSONField(default=dict)),
                ("findings", models.JSONField(default=list)),
                ("tries", models.IntegerField(default=0)),
                ("failures", models.IntegerField(default=0)),
                ("failure", models.CharField(default="", max_length=255)),
                ("opened_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("closed_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "capture batch",
                "verbose_name_plural": "capture batches",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["PRESENTING", "CLOSING", "UPLOADING"])),
                        fields=["due_at"],
                        name="capture_batch_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("channel", "acquirer_merchant_id", "number"), name="capture_batch_number"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BatchedCapture",
            fields=[
                ("payment", models.UUIDField(primary_key=True, serialize=False)),
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
                ("acquirer_merchant_id", models.CharField(max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("WAITING", "waits for a batch"),
                            ("IN_BATCH", "in a batch"),
                            ("TAKEN", "captured"),
                            ("REFUSED", "refused"),
                            ("WITHDRAWN", "taken back"),
                        ],
                        default="WAITING",
                        max_length=9,
                    ),
                ),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("message_sealed", models.BinaryField(null=True)),
                ("reference", models.CharField(default="", max_length=64)),
                ("present_at", models.DateTimeField(null=True)),
                (
                    "batch",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="captures",
                        to="gateway.capturebatch",
                    ),
                ),
                ("sends", models.IntegerField(default=0)),
                ("uploaded", models.SmallIntegerField(default=0)),
                ("code", models.CharField(default="", max_length=3)),
                ("answer", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField()),
                ("applied", models.BooleanField(default=False)),
            ],
            options={
                "verbose_name": "capture by batch",
                "verbose_name_plural": "captures by batch",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "WAITING")),
                        fields=["merchant", "present_at"],
                        name="capture_to_present",
                    ),
                    models.Index(
                        condition=models.Q(("applied", False), ("state__in", ["TAKEN", "REFUSED", "WITHDRAWN"])),
                        fields=["payment"],
                        name="capture_unapplied",
                    ),
                    models.Index(fields=["merchant", "-created_at"], name="capture_time"),
                ],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("amount__gt", 0)), name="batched_capture_positive")
                ],
            },
        ),
        migrations.CreateModel(
            name="RequestLog",
            fields=[
                ("id", models.UUIDField(default=gateway.core.identifiers.row_id, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("method", models.CharField(max_length=8)),
                ("path", models.CharField(max_length=200)),
                ("status", models.SmallIntegerField()),
                ("result_code", models.CharField(max_length=11)),
                ("entity_id", models.UUIDField(null=True)),
                ("token", models.UUIDField(null=True)),
                ("ip", models.GenericIPAddressField(null=True)),
                ("duration_ms", models.IntegerField()),
                ("payment", models.UUIDField(null=True)),
                ("parameters", models.JSONField(null=True)),
            ],
            options={
                "verbose_name": "request",
                "verbose_name_plural": "request log",
                "indexes": [models.Index(fields=["entity_id", "id"], name="request_entity_id")],
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("actor", models.CharField(max_length=150)),
                ("ip", models.GenericIPAddressField(null=True)),
                ("action", models.CharField(max_length=32)),
                ("subject", models.CharField(max_length=64)),
                ("subject_id", models.CharField(max_length=64)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                ("merchant", models.UUIDField(null=True)),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit trail",
                "indexes": [
                    models.Index(fields=["subject", "subject_id"], name="audit_subject"),
                    models.Index(
                        condition=models.Q(("merchant__isnull", False)),
                        fields=["merchant", "-id"],
                        name="audit_merchant",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "token", "method", "path", "key", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("token", models.UUIDField()),
                ("method", models.CharField(max_length=8)),
                ("path", models.CharField(max_length=64)),
                ("key", models.CharField(max_length=255)),
                ("fingerprint", models.BinaryField(max_length=16)),
                ("payment", models.UUIDField()),
                ("status", models.SmallIntegerField(null=True)),
                ("answer", models.TextField(null=True)),
                ("created_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="ProcessorEvent",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="processor_events",
                        to="gateway.acquireraccount",
                    ),
                ),
                ("event_id", models.CharField(max_length=255)),
                ("kind", models.CharField(max_length=64)),
                ("object_id", models.CharField(max_length=255)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "waits to be acted on"),
                            ("done", "done"),
                            ("ignored", "concerns nothing of ours"),
                            ("flagged", "a person has to look"),
                        ],
                        default="new",
                        max_length=8,
                    ),
                ),
                ("why", models.CharField(blank=True, default="", max_length=255)),
                ("payment", models.UUIDField(null=True)),
                ("recorded", models.UUIDField(null=True)),
                ("attempts", models.SmallIntegerField(default=0)),
                ("due_at", models.DateTimeField()),
                ("created_at", models.DateTimeField()),
                ("done_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("state", "new")), fields=["due_at"], name="processor_event_due"),
                    models.Index(
                        condition=models.Q(("done_at__isnull", False)), fields=["done_at"], name="processor_event_done"
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("account", "event_id"), name="processor_event_once")],
            },
        ),
        migrations.CreateModel(
            name="ProcessorReportedPayment",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "account",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="gateway.acquireraccount"),
                ),
                ("reference", models.CharField(max_length=255)),
                ("payment", models.UUIDField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("account", "reference"), name="processor_reported_payment_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Agreement",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
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
                ("reference", models.CharField(max_length=255)),
                ("network_reference", models.CharField(db_default="", default="", max_length=128)),
                ("agreement_id", models.CharField(default="", max_length=35)),
                ("transaction_link", models.CharField(db_default="", default="", max_length=22)),
                ("registration", models.UUIDField(null=True)),
                ("brand", models.CharField(db_default="", default="", max_length=32)),
                ("type", models.CharField(default="", max_length=11)),
                ("expiry", models.DateField(null=True)),
                ("frequency", models.SmallIntegerField(null=True)),
                ("max_payments", models.SmallIntegerField(null=True)),
                ("first_at", models.DateTimeField(null=True)),
                ("follow_ups", models.IntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("merchant_use_blocked_at", models.DateTimeField(null=True)),
                ("merchant_use_code", models.CharField(db_default="", default="", max_length=11)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["channel", "reference"], name="agreement_reference"),
                    models.Index(
                        condition=models.Q(("agreement_id", ""), _negated=True),
                        fields=["channel", "agreement_id"],
                        name="agreement_network_id",
                    ),
                    models.Index(
                        condition=models.Q(("registration__isnull", False)),
                        fields=["registration"],
                        name="agreement_registration",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RiskSet",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="risk_sets",
                        to="gateway.merchant",
                    ),
                ),
                ("key", models.CharField(max_length=255)),
                ("document", models.JSONField()),
                ("active", models.BooleanField(default=True)),
                ("version", models.IntegerField(default=1)),
                ("changed_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ["key"],
                "constraints": [models.UniqueConstraint(fields=("merchant", "key"), name="risk_set_key")],
            },
        ),
        migrations.CreateModel(
            name="RiskList",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="risk_lists",
                        to="gateway.merchant",
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("field", models.CharField(max_length=80)),
            ],
            options={
                "ordering": ["name"],
                "constraints": [models.UniqueConstraint(fields=("merchant", "name"), name="risk_list_name")],
            },
        ),
        migrations.CreateModel(
            name="RiskListEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "list",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="gateway.risklist",
                    ),
                ),
                ("value", models.CharField(max_length=512)),
                ("account_sealed", models.BinaryField(null=True)),
                ("fingerprint", models.BinaryField(null=True)),
            ],
            options={
                "verbose_name_plural": "risk list entries",
                "ordering": ["value"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("fingerprint__isnull", False)),
                        fields=["fingerprint"],
                        name="risk_list_account",
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("list", "value"), name="risk_list_entry")],
            },
        ),
        migrations.CreateModel(
            name="RiskDecision",
            fields=[
                (
                    "payment",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="risk_decision",
                        serialize=False,
                        to="gateway.payment",
                    ),
                ),
                ("set_key", models.CharField(default="", max_length=255)),
                ("version", models.IntegerField(default=0)),
                ("outcome", models.CharField(max_length=8)),
                ("code", models.CharField(default="", max_length=11)),
                ("score", models.IntegerField(null=True)),
                ("reasons", models.JSONField(default=list)),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="RiskObservation",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.merchant",
                    ),
                ),
                ("key", models.BinaryField(max_length=16)),
                ("at", models.DateTimeField()),
                ("payment", models.UUIDField()),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
            ],
            options={
                "indexes": [models.Index(fields=["merchant", "key", "at"], name="risk_observation")],
            },
        ),
        migrations.CreateModel(
            name="CardTestingCount",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "merchant_id",
                        "kind",
                        "key",
                        "bucket",
                        "shard",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("merchant_id", models.UUIDField()),
                ("kind", models.CharField(max_length=8)),
                ("key", models.BinaryField(max_length=16)),
                ("bucket", models.BigIntegerField()),
                ("shard", models.SmallIntegerField()),
                ("failed", models.IntegerField()),
                ("passed", models.IntegerField()),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="RiskTrial",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="risk_trials", to="gateway.merchant"
                    ),
                ),
                ("set_key", models.CharField(max_length=255)),
                ("document", models.JSONField()),
                ("lists", models.JSONField(default=dict)),
                ("whole", models.BooleanField(default=False)),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("asked_by", models.CharField(max_length=150)),
                ("asked_at", models.DateTimeField()),
                (
                    "work",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="gateway.backgroundwork",
                    ),
                ),
                ("figures", models.JSONField(default=dict)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["-asked_at"],
            },
        ),
        migrations.CreateModel(
            name="RiskTrialPayment",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "trial",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="payments",
                        to="gateway.risktrial",
                    ),
                ),
                ("payment", models.UUIDField()),
                ("at", models.DateTimeField()),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("status", models.CharField(max_length=8)),
                ("original_outcome", models.CharField(max_length=8)),
                ("trial_outcome", models.CharField(max_length=8)),
                ("code", models.CharField(default="", max_length=11)),
                ("score", models.IntegerField(null=True)),
                ("matching_rules", models.JSONField(default=list)),
                ("undecided_rules", models.JSONField(default=list)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("trial", "payment"), name="risk_trial_payment")],
            },
        ),
        migrations.CreateModel(
            name="RiskTrialObservation",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "trial",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="observations",
                        to="gateway.risktrial",
                    ),
                ),
                ("key", models.BinaryField(max_length=16)),
                ("at", models.DateTimeField()),
                ("payment", models.UUIDField()),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("trial", "key", "at", "payment"), name="risk_trial_observation")
                ],
            },
        ),
        migrations.CreateModel(
            name="RoutingRule",
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="routing_rules",
                        to="gateway.channel",
                    ),
                ),
                (
                    "position",
                    models.PositiveSmallIntegerField(default=100, help_text="The first rule that fits decides."),
                ),
                ("name", models.CharField(max_length=64)),
                ("active", models.BooleanField(default=True)),
                (
                    "brands",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), blank=True, default=list, size=None
                    ),
                ),
                (
                    "bins",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=23), blank=True, default=list, size=None
                    ),
                ),
                (
                    "currencies",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=3), blank=True, default=list, size=None
                    ),
                ),
                ("amount_from", models.DecimalField(blank=True, decimal_places=2, max_digits=12, null=True)),
                ("amount_to", models.DecimalField(blank=True, decimal_places=2, max_digits=12, null=True)),
                ("amount_currency", models.CharField(blank=True, default="", max_length=3)),
                (
                    "countries",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=2), blank=True, default=list, size=None
                    ),
                ),
                (
                    "payment_types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=2), blank=True, default=list, size=None
                    ),
                ),
                (
                    "issuer_countries",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=2), blank=True, db_default=[], default=list, size=None
                    ),
                ),
                (
                    "card_types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=7), blank=True, db_default=[], default=list, size=None
                    ),
                ),
                (
                    "card_levels",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128), blank=True, db_default=[], default=list, size=None
                    ),
                ),
                ("max_cascades", models.PositiveSmallIntegerField(db_default=0, default=0)),
                (
                    "choose_by",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "their weights"),
                            ("cheapest", "the cheapest whose approval rate is not worse"),
                            ("rate", "the best approval rate"),
                        ],
                        db_default="",
                        default="",
                        max_length=8,
                    ),
                ),
                ("max_rate_loss", models.DecimalField(db_default=0, decimal_places=2, default=0, max_digits=4)),
                ("explored_percent", models.PositiveSmallIntegerField(db_default=0, default=0)),
            ],
            options={
                "ordering": ["channel_id", "position", "id"],
                "indexes": [models.Index(fields=["channel", "position"], name="routing_channel_position")],
                "constraints": [
                    models.UniqueConstraint(fields=("channel", "name"), name="routing_rule_name"),
                    models.CheckConstraint(
                        condition=models.Q(("max_cascades__lte", 2)), name="routing_rule_max_cascades"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("choose_by__in", ["", "cheapest", "rate"])), name="routing_rule_choose_by"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_rate_loss__gte", 0), ("max_rate_loss__lte", 20)),
                        name="routing_rule_rate_loss",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("explored_percent__lte", 20)), name="routing_rule_explored"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RoutingTarget",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="targets", to="gateway.routingrule"
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="routing_targets",
                        to="gateway.acquireraccount",
                    ),
                ),
                ("weight", models.PositiveSmallIntegerField(default=1)),
                ("position", models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                "ordering": ["position", "id"],
                "constraints": [models.UniqueConstraint(fields=("rule", "account"), name="routing_target_once")],
            },
        ),
        migrations.CreateModel(
            name="BreakerChange",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("process", models.CharField(max_length=96)),
                ("connector", models.CharField(max_length=32)),
                ("channel", models.UUIDField(null=True)),
                ("acquirer_merchant_id", models.CharField(default="", max_length=64)),
                ("state", models.CharField(max_length=9)),
                ("since", models.DateTimeField(db_index=True)),
                ("why", models.CharField(default="", max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name="SepaMandate",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
                ("creditor", models.CharField(max_length=35)),
                ("mandate", models.CharField(max_length=35)),
                ("named_by_merchant", models.BooleanField()),
                ("recurring", models.BooleanField()),
                ("signed_on", models.DateField()),
                ("iban_sealed", models.BinaryField(null=True)),
                ("iban_fingerprint", models.BinaryField()),
                ("first_payment", models.UUIDField(null=True)),
                ("address", models.JSONField(blank=True, default=dict)),
                ("amendment", models.JSONField(blank=True, default=dict)),
                ("creditor_name", models.CharField(blank=True, default="", max_length=70)),
                ("instrument", models.CharField(blank=True, default="", max_length=4)),
                (
                    "state",
                    models.CharField(
                        choices=[("ACTIVE", "active"), ("BLOCKED", "blocked"), ("ENDED", "ended")],
                        default="ACTIVE",
                        max_length=7,
                    ),
                ),
                ("state_at", models.DateTimeField(null=True)),
                ("state_reason", models.CharField(blank=True, default="", max_length=35)),
                ("used_on", models.DateField(null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["iban_fingerprint"], name="sepa_mandate_account")],
                "constraints": [
                    models.UniqueConstraint(fields=("merchant", "creditor", "mandate"), name="sepa_mandate_once")
                ],
                "verbose_name": "mandate",
            },
        ),
        migrations.CreateModel(
            name="BankFile",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("merchant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant")),
                ("channel", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="gateway.channel")),
                ("acquirer_merchant_id", models.CharField(max_length=64)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("COLLECT", "direct debits (pain.008)"),
                            ("PAY", "credit transfers (pain.001)"),
                            ("REVERSE", "reversals of collections (pain.007)"),
                            ("CANCEL", "cancellation requests (camt.055)"),
                            ("RECALL", "recalls of credit transfers (camt.055)"),
                        ],
                        max_length=7,
                    ),
                ),
                ("message_id", models.CharField(max_length=35, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("DECIDED", "decided"),
                            ("WRITTEN", "written"),
                            ("DELIVERED", "delivered"),
                            ("FAILED", "not delivered"),
                        ],
                        default="DECIDED",
                        max_length=9,
                    ),
                ),
                ("creditor", models.JSONField()),
                ("orders_count", models.IntegerField()),
                ("total", models.DecimalField(decimal_places=2, max_digits=18)),
                ("stamped_at", models.DateTimeField()),
                ("sha256", models.CharField(default="", max_length=64)),
                ("size", models.BigIntegerField(null=True)),
                ("tries", models.SmallIntegerField(default=0)),
                ("due_at", models.DateTimeField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("failure", models.CharField(default="", max_length=255)),
                ("bank_status", models.CharField(default="", max_length=4)),
                ("delivered_at", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(null=True)),
                ("written_try", models.SmallIntegerField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["DECIDED", "WRITTEN"])),
                        fields=["due_at"],
                        name="bank_file_due",
                    ),
                    models.Index(
                        condition=models.Q(("removed_at__isnull", True), ("state", "DELIVERED")),
                        fields=["delivered_at"],
                        name="bank_file_lies",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BankOrder",
            fields=[
                ("payment", models.UUIDField(primary_key=True, serialize=False)),
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
                ("acquirer_merchant_id", models.CharField(max_length=64)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("COLLECT", "direct debits (pain.008)"),
                            ("PAY", "credit transfers (pain.001)"),
                            ("REVERSE", "reversals of collections (pain.007)"),
                            ("CANCEL", "cancellation requests (camt.055)"),
                            ("RECALL", "recalls of credit transfers (camt.055)"),
                        ],
                        max_length=7,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("WAITING", "waits for a file"),
                            ("FILED", "in a file"),
                            ("BOOKED", "booked"),
                            ("RETURNED", "returned"),
                            ("WON_BACK", "return reversed"),
                            ("REJECTED", "rejected"),
                            ("WITHDRAWN", "taken back"),
                            ("CONFIRMED", "agreed to by the bank"),
                        ],
                        default="WAITING",
                        max_length=9,
                    ),
                ),
                ("original_payment", models.UUIDField(null=True)),
                (
                    "mandate",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="orders",
                        to="gateway.sepamandate",
                    ),
                ),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("name", models.CharField(max_length=140)),
                ("iban_sealed", models.BinaryField(null=True)),
                ("iban_shown", models.CharField(max_length=34)),
                ("bic", models.CharField(default="", max_length=11)),
                ("text", models.CharField(max_length=140)),
                ("due_on", models.DateField(null=True)),
                ("file_at", models.DateTimeField(null=True)),
                ("final_at", models.DateTimeField(null=True)),
                (
                    "file",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="orders",
                        to="gateway.bankfile",
                    ),
                ),
                ("sequence", models.CharField(default="", max_length=4)),
                ("batch", models.CharField(default="", max_length=35)),
                ("recall_reason", models.CharField(blank=True, default="", max_length=4)),
                ("reason", models.CharField(default="", max_length=35)),
                ("undecided_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                ("address", models.JSONField(blank=True, default=dict)),
                ("amendment", models.JSONField(blank=True, default=dict)),
                ("last", models.BooleanField(default=False)),
                ("mandate_reference", models.CharField(default="", max_length=35)),
                ("notice", models.CharField(blank=True, default="", max_length=7)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "WAITING")),
                        fields=["merchant", "file_at"],
                        name="bank_order_to_file",
                    ),
                    models.Index(
                        condition=models.Q(("final_at__isnull", False), ("state", "FILED")),
                        fields=["merchant", "final_at"],
                        name="bank_order_to_finish",
                    ),
                    models.Index(fields=["merchant", "-created_at"], name="bank_order_time"),
                    models.Index(
                        condition=models.Q(("original_payment__isnull", False)),
                        fields=["original_payment"],
                        name="bank_order_original",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("amount__gte", 0)), name="bank_order_not_negative")
                ],
            },
        ),
        migrations.CreateModel(
            name="BankMessage",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("kind", models.CharField(max_length=8)),
                ("message_id", models.CharField(default="", max_length=35)),
                ("source", models.CharField(choices=[("FOLDER", "folder"), ("COMMAND", "command")], max_length=7)),
                ("sha256", models.CharField(max_length=64, unique=True)),
                ("size", models.BigIntegerField()),
                ("orders_changed", models.IntegerField(default=0)),
                ("findings", models.JSONField(default=list)),
                ("received_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["-received_at"], name="bank_message_time")],
            },
        ),
        migrations.CreateModel(
            name="BankOrderEvent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "order",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="events", to="gateway.bankorder"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("WAITING", "waits for a file"),
                            ("FILED", "in a file"),
                            ("BOOKED", "booked"),
                            ("RETURNED", "returned"),
                            ("WON_BACK", "return reversed"),
                            ("REJECTED", "rejected"),
                            ("WITHDRAWN", "taken back"),
                            ("CONFIRMED", "agreed to by the bank"),
                        ],
                        max_length=9,
                    ),
                ),
                ("reason", models.CharField(default="", max_length=35)),
                ("on", models.DateField(null=True)),
                (
                    "message",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="gateway.bankmessage",
                    ),
                ),
                ("at", models.DateTimeField()),
                ("applied", models.BooleanField(default=False)),
                ("charges", models.DecimalField(decimal_places=2, max_digits=14, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("applied", False)), fields=["id"], name="bank_order_event_unapplied"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BankOrderFollowUp",
            fields=[
                (
                    "event",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="follow_up",
                        serialize=False,
                        to="gateway.bankorderevent",
                    ),
                ),
                ("payment", models.UUIDField(unique=True)),
            ],
        ),
        migrations.CreateModel(
            name="SimulatedOrder",
            fields=[
                ("payment", models.UUIDField(primary_key=True, serialize=False)),
                ("handle", models.UUIDField(default=uuid.uuid4, unique=True)),
                ("kind", models.CharField(max_length=16)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("OPEN", "Open"),
                            ("APPROVED", "Approved"),
                            ("DECLINED", "Declined"),
                            ("CANCELLED", "Cancelled"),
                            ("EXPIRED", "Expired"),
                        ],
                        default="OPEN",
                        max_length=9,
                    ),
                ),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("brand", models.CharField(max_length=32)),
                ("reference", models.CharField(default="", max_length=255)),
                ("descriptor", models.CharField(default="", max_length=127)),
                ("language", models.CharField(default="en", max_length=2)),
                ("return_url", models.CharField(default="", max_length=2048)),
                ("opened_at", models.DateTimeField(auto_now_add=True)),
                ("decided_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("amount__gte", 0)), name="order_amount_not_negative")
                ],
            },
        ),
        migrations.CreateModel(
            name="SelfTest",
            fields=[
                ("row", models.CharField(max_length=120, primary_key=True, serialize=False)),
                ("fault", models.CharField(default="", max_length=500)),
                ("at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="TimerRun",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("last_at", models.DateTimeField()),
                ("last_ms", models.IntegerField()),
                ("runs", models.BigIntegerField(default=0)),
                ("done", models.BigIntegerField(default=0)),
                ("failures", models.BigIntegerField(default=0)),
                ("busy", models.BigIntegerField(default=0)),
                ("failed_at", models.DateTimeField(null=True)),
                ("last_failure", models.CharField(blank=True, default="", max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="grants", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("psp", "PSP staff"),
                            ("manager", "manager"),
                            ("clerk", "clerk"),
                            ("developer", "developer"),
                            ("auditor", "auditor"),
                        ],
                        max_length=9,
                        verbose_name="role",
                    ),
                ),
                (
                    "psp",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.psp",
                        verbose_name="PSP",
                    ),
                ),
                (
                    "division",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.division",
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.merchant",
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.channel",
                    ),
                ),
                (
                    "four_eyes_above",
                    models.DecimalField(
                        blank=True,
                        decimal_places=2,
                        help_text="Amount of one capture, refund or reversal; above it somebody else approves. Empty: no limit.",
                        max_digits=14,
                        null=True,
                        verbose_name="second person above",
                    ),
                ),
                (
                    "four_eyes_day",
                    models.DecimalField(
                        blank=True,
                        decimal_places=2,
                        help_text="What this person moves by hand in 24 hours, all in all in one merchant and currency.",
                        max_digits=14,
                        null=True,
                        verbose_name="second person above, in 24 hours",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name": "grant",
                "verbose_name_plural": "grants",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["psp", "manager", "clerk", "developer", "auditor"])),
                        name="grant_role_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("channel__isnull", True),
                                ("division__isnull", True),
                                ("merchant__isnull", True),
                                ("psp__isnull", False),
                            ),
                            models.Q(
                                ("channel__isnull", True),
                                ("division__isnull", False),
                                ("merchant__isnull", True),
                                ("psp__isnull", True),
                            ),
                            models.Q(
                                ("channel__isnull", True),
                                ("division__isnull", True),
                                ("merchant__isnull", False),
                                ("psp__isnull", True),
                            ),
                            models.Q(
                                ("channel__isnull", False),
                                ("division__isnull", True),
                                ("merchant__isnull", True),
                                ("psp__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="grant_one_node",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("role", "psp"), _negated=True), ("psp__isnull", False), _connector="OR"
                        ),
                        name="grant_psp_staff_at_psp",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("four_eyes_above__isnull", True), ("four_eyes_above__gte", 0), _connector="OR"
                        ),
                        name="grant_four_eyes_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("four_eyes_day__isnull", True), ("four_eyes_day__gte", 0), _connector="OR"),
                        name="grant_four_eyes_day_not_negative",
                    ),
                    models.UniqueConstraint(
                        fields=("user", "role", "psp", "division", "merchant", "channel"),
                        name="grant_once",
                        nulls_distinct=False,
                    ),
                ],
            },
        ),
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
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="used_passwords",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("hashed", models.CharField(editable=False, max_length=255)),
                ("at", models.DateTimeField(editable=False)),
            ],
            options={
                "indexes": [models.Index(fields=["user", "-at"], name="used_password_user_time")],
            },
        ),
        migrations.CreateModel(
            name="SignIn",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sign_ins",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
                ("ip", models.GenericIPAddressField(null=True)),
                ("agent", models.CharField(default="", max_length=200)),
                ("second_factor", models.BooleanField(default=False)),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.CharField(default="", max_length=150)),
            ],
            options={
                "verbose_name": "sign-in",
                "verbose_name_plural": "sign-ins",
                "ordering": ["-at"],
                "indexes": [models.Index(fields=["user", "-at"], name="sign_in_user_time")],
            },
        ),
        migrations.CreateModel(
            name="UserHandling",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("action", models.CharField(max_length=32)),
                ("at", models.DateTimeField()),
                (
                    "confirmed_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("confirmed_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "by"), name="user_handling_once"),
                    models.CheckConstraint(
                        condition=models.Q(("by", models.F("user")), _negated=True), name="user_handling_of_another"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("confirmed_by__isnull", True),
                            models.Q(
                                models.Q(("confirmed_by", models.F("by")), _negated=True),
                                models.Q(("confirmed_by", models.F("user")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="user_handling_confirmed_by_a_third",
                    ),
                ],
            },
        ),
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
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="wallet_keys", to="gateway.channel"
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
                ("is_test_key", models.BooleanField(default=False, editable=False)),
                ("active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
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
            name="UsedWalletToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
                ("digest", models.BinaryField(max_length=32)),
                ("payment", models.UUIDField()),
                ("seen_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["until"], name="wallet_token_until")],
                "constraints": [models.UniqueConstraint(fields=("merchant", "digest"), name="wallet_token_once")],
            },
        ),
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="webhook_endpoints",
                        to="gateway.merchant",
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="webhook_endpoints",
                        to="gateway.channel",
                    ),
                ),
                ("url", models.CharField(max_length=2048)),
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=12), default=list, size=None
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("encrypted", "encrypted (AES-256-GCM)"),
                            ("signed", "signed (Standard Webhooks)"),
                            ("return", "the notificationUrl of each payment"),
                        ],
                        default="encrypted",
                        max_length=9,
                    ),
                ),
                (
                    "wrapper",
                    models.CharField(
                        choices=[("none", "the body is the text in hex"), ("json", '{"encryptedBody": …}')],
                        default="none",
                        max_length=4,
                    ),
                ),
                ("secret_sealed", models.BinaryField(null=True)),
                ("previous_sealed", models.BinaryField(null=True)),
                ("previous_until", models.DateTimeField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("inactive", "not activated yet"),
                            ("active", "active"),
                            ("paused", "paused: it fails wholly and is probed"),
                            ("off", "off"),
                        ],
                        default="inactive",
                        max_length=8,
                    ),
                ),
                ("reason", models.CharField(blank=True, default="", max_length=255)),
                ("failures", models.IntegerField(default=0, editable=False)),
                ("failing_since", models.DateTimeField(editable=False, null=True)),
                ("probes", models.SmallIntegerField(default=0, editable=False)),
                ("untested", models.BooleanField(db_default=False, default=False, editable=False)),
                ("probe_at", models.DateTimeField(editable=False, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ["merchant_id", "created_at"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("mode", "return")), fields=("merchant",), name="webhook_one_return"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("url", "inspector:")),
                        fields=("merchant", "channel", "mode"),
                        name="webhook_one_inspector",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("mode", "return"), ("secret_sealed__isnull", False), _connector="OR"),
                        name="webhook_endpoint_has_a_secret",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="deliveries",
                        to="gateway.webhookendpoint",
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.merchant",
                    ),
                ),
                ("notification", models.BigIntegerField(null=True)),
                ("kind", models.CharField(max_length=12)),
                ("action", models.CharField(max_length=32)),
                ("payment", models.UUIDField(null=True)),
                ("sequence", models.SmallIntegerField(default=0)),
                ("body", models.TextField()),
                ("url", models.CharField(default="", max_length=2600)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("delivered", "delivered"),
                            ("given_up", "given up after 30 days"),
                            ("cancelled", "cancelled: the endpoint is off"),
                        ],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("attempts", models.SmallIntegerField(default=0)),
                ("due_at", models.DateTimeField()),
                ("give_up_at", models.DateTimeField()),
                ("lease_until", models.DateTimeField(null=True)),
                ("lease", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "webhook deliveries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")), fields=["endpoint", "due_at"], name="webhook_due"
                    ),
                    models.Index(
                        condition=models.Q(("payment__isnull", False)), fields=["payment"], name="webhook_payment"
                    ),
                    models.Index(
                        condition=models.Q(("state", "waiting")), fields=["give_up_at"], name="webhook_give_up"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("endpoint", "notification"), name="webhook_delivery_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookAttempt",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "delivery",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tried",
                        to="gateway.webhookdelivery",
                    ),
                ),
                ("number", models.SmallIntegerField()),
                ("at", models.DateTimeField()),
                ("status", models.SmallIntegerField(null=True)),
                ("failure", models.CharField(default="", max_length=12)),
                ("answer", models.CharField(default="", max_length=512)),
                ("duration_ms", models.IntegerField()),
                (
                    "tried_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "ordering": ["delivery_id", "id"],
            },
        ),
        migrations.CreateModel(
            name="InspectedWebhook",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="inspected",
                        to="gateway.webhookendpoint",
                    ),
                ),
                ("delivery", models.UUIDField()),
                ("attempt", models.SmallIntegerField()),
                ("at", models.DateTimeField()),
                ("headers", models.JSONField()),
                ("body", models.TextField()),
            ],
            options={
                "indexes": [models.Index(fields=["endpoint", "-id"], name="inspected_newest")],
            },
        ),
        migrations.CreateModel(
            name="FanOutPosition",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("position", models.BigIntegerField()),
                ("gaps", models.JSONField(default=list)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="fan_out_position_is_one_row")
                ],
            },
        ),
        migrations.CreateModel(
            name="MandateMail",
            fields=[
                (
                    "payment",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="mandate_mail",
                        serialize=False,
                        to="gateway.payment",
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.merchant",
                    ),
                ),
                ("mandate", models.CharField(max_length=256)),
                ("due_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("DUE", "to be sent"),
                            ("SENT", "sent"),
                            ("KNOWN", "not needed: the shopper knows, or the merchant notifies"),
                            ("GIVEN_UP", "given up"),
                        ],
                        db_default="DUE",
                        default="DUE",
                        max_length=8,
                    ),
                ),
                ("tries", models.SmallIntegerField(db_default=0, default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                ("failure", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("sent_at", models.DateTimeField(null=True)),
                ("sent_to", models.CharField(blank=True, db_default="", default="", max_length=128)),
                ("language", models.CharField(blank=True, db_default="", default="", max_length=2)),
                ("subject", models.CharField(blank=True, db_default="", default="", max_length=400)),
                ("body", models.TextField(blank=True, db_default="", default="")),
                (
                    "kind",
                    models.CharField(
                        choices=[("MANDATE", "mandate"), ("NOTICE", "pre-notification")],
                        db_default="MANDATE",
                        default="MANDATE",
                        max_length=7,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("state", "DUE")), fields=["due_at"], name="mandate_mail_due"),
                    models.Index(fields=["merchant", "mandate"], name="mandate_mail_mandate"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["DUE", "SENT", "KNOWN", "GIVEN_UP"])),
                        name="mandate_mail_state_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CardDecline",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("key", models.BinaryField(max_length=16)),
                ("at", models.DateTimeField()),
                ("payment", models.UUIDField()),
                ("stops", models.CharField(default="", max_length=8)),
                ("retry_after", models.DateTimeField(null=True)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.merchant",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["merchant", "key", "at"], name="card_decline")],
            },
        ),
        migrations.CreateModel(
            name="Registration",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
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
                    "status",
                    models.CharField(
                        choices=[("ACTIVE", "Active"), ("DELETED", "Deleted")], default="ACTIVE", max_length=8
                    ),
                ),
                ("brand", models.CharField(max_length=32)),
                ("method", models.CharField(max_length=2)),
                ("means", models.CharField(max_length=16)),
                ("means_sealed", models.BinaryField(null=True)),
                ("details", models.JSONField(default=dict)),
                ("request", models.JSONField(default=dict)),
                ("payment", models.UUIDField()),
                ("test_mode", models.CharField(default="", max_length=8)),
                ("sequence", models.IntegerField(default=1)),
                ("retain_until", models.DateTimeField(db_index=True, null=True)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField(null=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("merchant_use_blocked_at", models.DateTimeField(null=True)),
                ("merchant_use_code", models.CharField(db_default="", default="", max_length=11)),
                ("account_update", models.CharField(db_default="", default="", max_length=14)),
                ("account_updated_at", models.DateTimeField(null=True)),
                ("account_update_due_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["merchant", "-created_at"], name="registration_merchant_time"),
                    models.Index(
                        models.F("channel"),
                        django.db.models.functions.comparison.Coalesce("account_update_due_at", "created_at"),
                        condition=models.Q(("means", "card"), ("status", "ACTIVE")),
                        name="registration_account_update",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "DELETED"), _negated=True),
                            ("means_sealed__isnull", True),
                            _connector="OR",
                        ),
                        name="registration_deleted_holds_nothing",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="NetworkToken",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "registration",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="network_token",
                        to="gateway.registration",
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("REQUESTED", "asked for"),
                            ("ACTIVE", "active"),
                            ("SUSPENDED", "suspended"),
                            ("REFUSED", "refused by the network"),
                            ("DELETED", "deleted"),
                        ],
                        default="REQUESTED",
                        max_length=9,
                    ),
                ),
                ("reference", models.CharField(db_default="", default="", max_length=64)),
                ("number_sealed", models.BinaryField(null=True)),
                ("last4", models.CharField(db_default="", default="", max_length=4)),
                ("expiry_month", models.CharField(db_default="", default="", max_length=2)),
                ("expiry_year", models.CharField(db_default="", default="", max_length=4)),
                ("requestor", models.CharField(db_default="", default="", max_length=11)),
                ("due_at", models.DateTimeField(db_index=True, null=True)),
                ("tries", models.SmallIntegerField(db_default=0, default=0)),
                ("changed_at", models.DateTimeField()),
                ("history", models.JSONField(db_default=[], default=list)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("reference", ""), _negated=True),
                        fields=("reference",),
                        name="network_token_reference",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AccountUpdateFile",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("UNSENT", "not sent yet"),
                            ("SENT", "sent"),
                            ("ANSWERED", "answered"),
                            ("GIVEN_UP", "given up"),
                        ],
                        default="UNSENT",
                        max_length=8,
                    ),
                ),
                ("cards", models.IntegerField()),
                ("content", models.BinaryField(null=True)),
                ("due_at", models.DateTimeField(db_index=True, null=True)),
                ("tries", models.SmallIntegerField(default=0)),
                ("fault", models.CharField(default="", max_length=200)),
                ("created_at", models.DateTimeField()),
                ("answered_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="AccountUpdate",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "registration",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="account_updates",
                        to="gateway.registration",
                    ),
                ),
                (
                    "file",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="gateway.accountupdatefile"
                    ),
                ),
                ("sequence", models.IntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("WAITING", "waiting for an answer"),
                            ("NO_CHANGE", "nothing has changed"),
                            ("NEW_NUMBER", "a new number"),
                            ("NEW_EXPIRY", "a new expiry date"),
                            ("CLOSED", "the account is closed"),
                            ("CONTACT_HOLDER", "the holder has to be asked"),
                            ("UNKNOWN", "the card is not known"),
                            ("SUPERSEDED", "the stored card was changed meanwhile"),
                            ("UNANSWERED", "no answer"),
                        ],
                        default="WAITING",
                        max_length=14,
                    ),
                ),
                ("asked_at", models.DateTimeField()),
                ("answered_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["registration", "asked_at"], name="account_update_registration"),
                    models.Index(fields=["asked_at"], name="account_update_asked"),
                ],
            },
        ),
        migrations.CreateModel(
            name="PaymentToken",
            fields=[
                (
                    "payment",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="network_token",
                        serialize=False,
                        to="gateway.payment",
                    ),
                ),
                ("number_sealed", models.BinaryField()),
                ("expiry_month", models.CharField(max_length=2)),
                ("expiry_year", models.CharField(max_length=4)),
                ("requestor", models.CharField(db_default="", default="", max_length=11)),
            ],
        ),
        migrations.CreateModel(
            name="Authentication",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("payment", models.UUIDField(null=True)),
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
                ("brand", models.CharField(max_length=32)),
                ("network", models.CharField(max_length=32)),
                ("version", models.CharField(default="", max_length=8)),
                ("device_channel", models.CharField(default="", max_length=2)),
                ("category", models.CharField(default="", max_length=2)),
                ("challenge_indicator", models.CharField(default="", max_length=2)),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("card", models.CharField(default="", max_length=32, verbose_name="card, masked")),
                (
                    "step",
                    models.CharField(
                        choices=[
                            ("method", "Method"),
                            ("asking", "Asking"),
                            ("challenge", "Challenge"),
                            ("decoupled", "Decoupled"),
                            ("done", "Done"),
                        ],
                        default="done",
                        max_length=9,
                    ),
                ),
                ("flow", models.CharField(default="", max_length=12)),
                ("scenario", models.CharField(default="", max_length=24)),
                ("window", models.CharField(default="", max_length=2)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("resends", models.PositiveSmallIntegerField(default=0)),
                ("trans_status", models.CharField(default="", max_length=1)),
                ("trans_status_reason", models.CharField(default="", max_length=2)),
                ("eci", models.CharField(default="", max_length=2)),
                ("proof_sealed", models.BinaryField(null=True)),
                ("number_sealed", models.BinaryField(null=True)),
                ("ds_transaction", models.CharField(default="", max_length=36)),
                ("acs_transaction", models.CharField(default="", max_length=36)),
                ("code", models.CharField(default="", max_length=11)),
                ("ask", models.JSONField(default=dict)),
                ("messages", models.JSONField(default=list)),
                ("request", models.JSONField(default=dict)),
                ("answer", models.JSONField(default=dict)),
                ("return_url", models.CharField(default="", max_length=2048)),
                ("test_mode", models.CharField(default="", max_length=8)),
                ("request_id", models.UUIDField()),
                ("created_at", models.DateTimeField()),
                ("deadline", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("completed_at", models.DateTimeField(null=True)),
                ("acs_url", models.CharField(db_default="", default="", max_length=2048)),
                ("method_url", models.CharField(db_default="", default="", max_length=2048)),
                ("server_url", models.CharField(db_default="", default="", max_length=255)),
                ("attempt", models.SmallIntegerField(db_default=1, default=1)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("step", "done"), _negated=True),
                        fields=["deadline"],
                        name="authentication_open",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("step__in", ["method", "asking", "challenge", "decoupled", "done"])),
                        name="authentication_step_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("step", "done"), ("deadline__isnull", False), _connector="OR"),
                        name="authentication_open_has_a_deadline",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("step", "done"), _negated=True), ("number_sealed__isnull", True), _connector="OR"
                        ),
                        name="authentication_done_keeps_no_number",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("payment__isnull", False)),
                        fields=("payment", "attempt"),
                        name="authentication_payment",
                    ),
                    models.CheckConstraint(condition=models.Q(("attempt__in", (1, 2))), name="authentication_attempt"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ThreeDSecureConfiguration",
            fields=[
                (
                    "channel",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="three_ds",
                        serialize=False,
                        to="gateway.channel",
                    ),
                ),
                (
                    "networks",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32),
                        blank=True,
                        default=list,
                        help_text="Of visa, mastercard, amex, diners, jcb, cb, separated by commas; empty: all.",
                        size=None,
                    ),
                ),
                (
                    "requestors",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Network → {id, name, acquirerBin, acquirerMerchantId}; a request's own go first.",
                        validators=[gateway.models.threeds.validate_requestors],
                    ),
                ),
                (
                    "on_unavailable",
                    models.CharField(
                        choices=[("proceed", "go on without liability shift"), ("decline", "decline the payment")],
                        default="proceed",
                        help_text="Card not enrolled, status U, directory not reached.",
                        max_length=8,
                        verbose_name="when authentication is not available",
                    ),
                ),
                (
                    "on_attempt",
                    models.CharField(
                        choices=[("proceed", "go on without liability shift"), ("decline", "decline the payment")],
                        default="proceed",
                        help_text="Status A.",
                        max_length=8,
                        verbose_name="when it was only attempted",
                    ),
                ),
                (
                    "challenge_indicator",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("01", "01"),
                            ("02", "02"),
                            ("03", "03"),
                            ("04", "04"),
                            ("05", "05"),
                            ("06", "06"),
                            ("07", "07"),
                            ("08", "08"),
                            ("09", "09"),
                        ],
                        default="",
                        help_text="threeDSecure.challengeIndicator where a request sends none.",
                        max_length=2,
                    ),
                ),
                (
                    "challenge_minutes",
                    models.PositiveSmallIntegerField(
                        default=10,
                        help_text="How long the shopper may take; the payment is declined then.",
                        validators=[
                            django.core.validators.MinValueValidator(5),
                            django.core.validators.MaxValueValidator(60),
                        ],
                    ),
                ),
                (
                    "method",
                    models.BooleanField(
                        default=True,
                        help_text="Load the issuer's method page in the shopper's browser, where it has one.",
                        verbose_name="method page",
                    ),
                ),
                (
                    "merchant_category_code",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Four digits (ISO 18245); merchant.mcc goes first.",
                        max_length=4,
                        validators=[
                            django.core.validators.RegexValidator("^[0-9]{4}$", "Give the four digits of ISO 18245.")
                        ],
                        verbose_name="merchant category code",
                    ),
                ),
                (
                    "merchant_country",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Two letters (ISO 3166-1); merchant.country goes first.",
                        max_length=2,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Z]{2}$", "Give two capital letters (ISO 3166-1)."
                            )
                        ],
                        verbose_name="merchant country",
                    ),
                ),
                (
                    "requestor_url",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The shop's website (threeDSRequestorURL); threeDSecure.merchant.url goes first.",
                        max_length=2048,
                        verbose_name="website",
                    ),
                ),
                ("server_secret_sealed", models.BinaryField(null=True)),
                ("server_secret_set_at", models.DateTimeField(editable=False, null=True)),
                (
                    "server_url",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Address of the external 3DS server, https://…; the live environment needs one.",
                        max_length=255,
                        verbose_name="3DS server",
                    ),
                ),
                (
                    "on_soft_decline",
                    models.CharField(
                        choices=[
                            ("decline", "decline the payment with 300.100.100"),
                            ("challenge", "challenge the shopper and authorize the payment again"),
                        ],
                        db_default="decline",
                        default="decline",
                        help_text="Soft decline, 300.100.100, of a payment whose shopper was not challenged.",
                        max_length=9,
                        verbose_name="when the bank wants an authentication",
                    ),
                ),
            ],
            options={
                "verbose_name": "3-D Secure configuration",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("challenge_minutes__gte", 5), ("challenge_minutes__lte", 60)),
                        name="threeds_challenge_minutes",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuthorizationRelease",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("authorization", models.UUIDField(db_index=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("tries", models.SmallIntegerField(db_default=0, default=0)),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14, null=True)),
                (
                    "cause",
                    models.CharField(
                        choices=[
                            ("FINAL", "a follow-up with sequence=FINAL"),
                            ("EXPIRY", "expired"),
                            ("RENEWAL", "replaced by a renewal"),
                        ],
                        max_length=7,
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.channel",
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("currency", models.CharField(max_length=3)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.merchant",
                    ),
                ),
                ("payment", models.UUIDField(null=True)),
                ("result_code", models.CharField(db_default="", default="", max_length=11)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("OPEN", "to be released"),
                            ("RELEASED", "released"),
                            ("NOTHING", "nothing was left"),
                            ("GIVEN_UP", "given up"),
                        ],
                        db_default="OPEN",
                        default="OPEN",
                        max_length=8,
                    ),
                ),
            ],
            options={
                "verbose_name": "released authorization",
                "verbose_name_plural": "released authorizations",
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)),
                        fields=["due_at"],
                        name="authorization_release_due",
                    ),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", False)),
                        fields=["ended_at"],
                        name="authorization_release_ended",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuthorizationExpiry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("authorization", models.UUIDField()),
                ("due_at", models.DateTimeField()),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.merchant",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["due_at"], name="authorization_expiry_due"),
                    models.Index(fields=["merchant", "due_at"], name="authorization_expiry_merchant"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.merchant",
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.channel",
                    ),
                ),
                ("kind", models.CharField(max_length=12)),
                ("action", models.CharField(max_length=12)),
                (
                    "payment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.payment",
                    ),
                ),
                ("registration", models.UUIDField(null=True)),
                ("sequence", models.SmallIntegerField()),
                ("created_at", models.DateTimeField()),
                ("subject", models.UUIDField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("payment", "sequence", "kind"), name="notification_sequence")
                ],
            },
        ),
        migrations.CreateModel(
            name="ChainState",
            fields=[
                (
                    "chain",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="standing",
                        serialize=False,
                        to="gateway.payment",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("authorized", "Authorized"),
                            ("partly_captured", "Partly Captured"),
                            ("captured", "Captured"),
                            ("partly_refunded", "Partly Refunded"),
                            ("refunded", "Refunded"),
                            ("voided", "Voided"),
                            ("expired", "Expired"),
                            ("disputed", "Disputed"),
                            ("charged_back", "Charged Back"),
                            ("won_back", "Won Back"),
                            ("paid_out", "Paid Out"),
                        ],
                        max_length=16,
                    ),
                ),
                ("disputed", models.BooleanField(db_default=False, default=False)),
                ("expired", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField()),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.merchant",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["merchant", "state", "created_at", "chain"], name="chain_state_merchant_time"),
                    models.Index(fields=["state", "chain"], name="chain_state_newest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("public", models.CharField(max_length=64)),
                ("private_sealed", models.BinaryField()),
                ("created_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="AuditSeal",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("entry", models.BigIntegerField(unique=True)),
                ("digest", models.CharField(max_length=64)),
                ("sealed_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("number__gte", 1)), name="audit_seal_from_one")
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkAction",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("code", models.CharField(max_length=2)),
                ("reason", models.CharField(blank=True, default="", max_length=9)),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                ("selection", models.JSONField(default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("CHECKING", "being checked"),
                            ("CHECKED", "checked, nothing sent"),
                            ("RUNNING", "being sent"),
                            ("DONE", "carried out"),
                        ],
                        default="CHECKING",
                        max_length=8,
                    ),
                ),
                ("asked_at", models.DateTimeField()),
                ("checked_at", models.DateTimeField(null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "undo_of",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.bulkaction",
                    ),
                ),
                (
                    "work",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.backgroundwork",
                    ),
                ),
            ],
            options={
                "verbose_name": "action on many payments",
                "verbose_name_plural": "actions on many payments",
                "indexes": [models.Index(fields=["owner", "-asked_at"], name="bulk_action_owner_time")],
            },
        ),
        migrations.CreateModel(
            name="BulkItem",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("payment", models.UUIDField()),
                ("target", models.UUIDField()),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("READY", "will be sent"),
                            ("OVER", "needs approval"),
                            ("NOT", "not possible"),
                            ("DONE", "accepted"),
                            ("OPEN", "sent, no answer yet"),
                            ("DECLINED", "declined"),
                            ("ASKED", "asked for approval"),
                            ("REFUSED", "not sent"),
                        ],
                        max_length=8,
                    ),
                ),
                ("why", models.CharField(default="", max_length=500)),
                ("follow_up", models.UUIDField()),
                (
                    "action",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="gateway.bulkaction",
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.merchant",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["action", "state", "id"], name="bulk_item_action_state")],
                "constraints": [models.UniqueConstraint(fields=("action", "target"), name="bulk_item_once")],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("page", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=60, verbose_name="name")),
                ("query", models.JSONField(default=dict)),
                ("shared", models.BooleanField(default=False)),
                ("scope", models.JSONField(default=dict)),
                ("saved_at", models.DateTimeField()),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "saved view",
                "verbose_name_plural": "saved views",
                "indexes": [
                    models.Index(condition=models.Q(("shared", True)), fields=["page"], name="saved_view_shared")
                ],
                "constraints": [models.UniqueConstraint(fields=("owner", "page", "name"), name="saved_view_once")],
            },
        ),
        migrations.CreateModel(
            name="UserPreference",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="preference",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("time_zone", models.CharField(blank=True, default="", max_length=64, verbose_name="time zone")),
                ("columns", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                (
                    "page_keys",
                    models.BooleanField(
                        db_default=True, default=True, verbose_name="single letters are keys of a page"
                    ),
                ),
            ],
            options={
                "verbose_name": "preference",
                "verbose_name_plural": "preferences",
            },
        ),
        migrations.CreateModel(
            name="Approval",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
                (
                    "payment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="approvals", to="gateway.payment"
                    ),
                ),
                ("payment_type", models.CharField(max_length=2)),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("ASKED", "waits for a decision"),
                            ("APPROVED", "approved, being carried out"),
                            ("DONE", "carried out"),
                            ("FAILED", "approved, but refused"),
                            ("REJECTED", "rejected"),
                            ("WITHDRAWN", "withdrawn"),
                        ],
                        default="ASKED",
                        max_length=9,
                    ),
                ),
                (
                    "asked_by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("asked_by_name", models.CharField(max_length=150)),
                ("asked_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "decided_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("decided_by_name", models.CharField(default="", max_length=150)),
                ("decided_at", models.DateTimeField(null=True)),
                ("decision_note", models.CharField(blank=True, default="", max_length=500)),
                ("follow_up", models.UUIDField(null=True)),
                ("result_code", models.CharField(default="", max_length=11)),
                (
                    "over",
                    models.CharField(
                        choices=[("payment", "the limit for one payment"), ("day", "the limit for 24 hours")],
                        db_default="payment",
                        default="payment",
                        max_length=7,
                    ),
                ),
                ("over_limit", models.DecimalField(decimal_places=2, max_digits=14, null=True)),
                ("moved", models.DecimalField(decimal_places=2, max_digits=16, null=True)),
                ("reason", models.CharField(blank=True, db_default="", default="", max_length=9)),
                ("language", models.CharField(blank=True, db_default="", default="", max_length=8)),
                (
                    "notice",
                    models.CharField(
                        blank=True,
                        choices=[("request", "to those who may decide"), ("decision", "to the user who asked")],
                        db_default="",
                        default="",
                        max_length=8,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["merchant", "-asked_at"], name="approval_merchant_time"),
                    models.Index(
                        condition=models.Q(("state", "APPROVED")), fields=["decided_at"], name="approval_to_carry_out"
                    ),
                    models.Index(
                        condition=models.Q(("notice", ""), _negated=True), fields=["asked_at"], name="approval_to_mail"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("amount__gt", 0)), name="approval_amount_positive"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["ASKED", "WITHDRAWN", "REJECTED"]),
                            models.Q(
                                ("decided_by__isnull", False),
                                models.Q(("decided_by", models.F("asked_by")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="approval_by_somebody_else",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["APPROVED", "DONE", "FAILED"]), _negated=True),
                            ("follow_up__isnull", False),
                            _connector="OR",
                        ),
                        name="approval_names_its_follow_up",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AccountErasurePosition",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("position", models.UUIDField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="account_erasure_position_is_one_row")
                ],
            },
        ),
        migrations.CreateModel(
            name="ArchivedPayment",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("chain", models.UUIDField()),
                ("number", models.BigIntegerField()),
                ("payment_type", models.CharField(max_length=2)),
                ("method", models.CharField(max_length=2)),
                ("merchant_transaction_id", models.CharField(max_length=255)),
                ("merchant_invoice_id", models.CharField(max_length=255)),
                ("created_at", models.DateTimeField()),
                ("row", models.JSONField()),
                ("events", models.JSONField()),
                ("chain_expired", models.BooleanField()),
                ("archived_at", models.DateTimeField()),
                (
                    "channel",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.channel",
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway.merchant",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["chain"], name="archived_payment_chain"),
                    models.Index(fields=["number"], name="archived_payment_number"),
                    models.Index(fields=["merchant_transaction_id", "merchant"], name="archived_payment_order"),
                    models.Index(fields=["merchant_invoice_id", "merchant"], name="archived_payment_invoice"),
                    models.Index(fields=["created_at", "merchant"], name="archived_payment_made"),
                    models.Index(fields=["channel", "created_at"], name="archived_payment_time"),
                    models.Index(
                        condition=models.Q(("payment_type__in", ["DB", "PA", "CP"]), _negated=True),
                        fields=["channel", "payment_type", "created_at"],
                        name="archived_payment_type",
                    ),
                    models.Index(
                        condition=models.Q(("method", "CC"), _negated=True),
                        fields=["channel", "method", "created_at"],
                        name="archived_payment_method",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ArchivePosition",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("position", models.UUIDField()),
                ("rest_until", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="archive_position_is_one_row")
                ],
            },
        ),
        migrations.CreateModel(
            name="ErasureRequest",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("email", "e-mail address"),
                            ("customer", "customer id"),
                            ("phone", "telephone number"),
                            ("registration", "registration id"),
                            ("payment", "payment id"),
                        ],
                        max_length=12,
                    ),
                ),
                ("value", models.CharField(default="", max_length=255)),
                ("shown", models.CharField(max_length=255)),
                ("reason", models.CharField(max_length=500)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("ASKED", "waits for a second person"),
                            ("APPROVED", "approved, waits for the command"),
                            ("DONE", "erased"),
                            ("REJECTED", "rejected"),
                            ("WITHDRAWN", "withdrawn"),
                        ],
                        default="ASKED",
                        max_length=9,
                    ),
                ),
                ("asked_by_name", models.CharField(max_length=150)),
                ("asked_at", models.DateTimeField()),
                ("decided_by_name", models.CharField(default="", max_length=150)),
                ("decided_at", models.DateTimeField(null=True)),
                ("report", models.JSONField(default=dict)),
                (
                    "asked_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                "verbose_name": "erasure request",
                "verbose_name_plural": "erasure requests",
                "indexes": [models.Index(fields=["merchant", "-asked_at"], name="erasure_merchant_time")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["ASKED", "APPROVED"]), ("value", ""), _connector="OR"),
                        name="erasure_ended_keeps_no_value",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["APPROVED", "DONE"]), _negated=True),
                            ("asked_by__isnull", True),
                            models.Q(
                                ("decided_by__isnull", False),
                                models.Q(("decided_by", models.F("asked_by")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="erasure_by_two_people",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ExemptionCount",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "merchant_id", "key", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("key", models.BinaryField(max_length=16)),
                ("payments", models.SmallIntegerField()),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("authentications", models.IntegerField()),
                ("used_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.merchant",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["used_at"], name="exemption_count_used")],
            },
        ),
        migrations.CreateModel(
            name="ExemptionRequest",
            fields=[
                (
                    "payment",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="exemption_request",
                        serialize=False,
                        to="gateway.payment",
                    ),
                ),
                ("exemption", models.CharField(max_length=16)),
                ("stage", models.CharField(max_length=14)),
                ("stage_why", models.CharField(max_length=12)),
                ("euros", models.DecimalField(decimal_places=2, max_digits=14, null=True)),
                ("amount_limit", models.DecimalField(decimal_places=2, max_digits=14, null=True)),
                ("score", models.IntegerField(null=True)),
                ("payments", models.SmallIntegerField(null=True)),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14, null=True)),
                ("authentications", models.IntegerField(null=True)),
                ("at", models.DateTimeField()),
                (
                    "channel",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.channel",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["channel", "exemption", "stage", "at"], name="exemption_outcome")],
            },
        ),
        migrations.CreateModel(
            name="AcquirerCost",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "pricing",
                    models.CharField(
                        choices=[("BLENDED", "blended"), ("PLUS", "interchange-plus")], default="BLENDED", max_length=7
                    ),
                ),
                ("brand", models.CharField(blank=True, default="", max_length=32)),
                ("region", models.CharField(blank=True, default="", max_length=7)),
                ("level", models.CharField(blank=True, default="", max_length=16)),
                ("currency", models.CharField(blank=True, default="", max_length=3)),
                ("percent", models.DecimalField(decimal_places=4, default=0, max_digits=7)),
                ("fixed", models.DecimalField(decimal_places=4, default=0, max_digits=12)),
                ("interchange_percent", models.DecimalField(decimal_places=4, default=0, max_digits=7)),
                ("interchange_fixed", models.DecimalField(decimal_places=4, default=0, max_digits=12)),
                ("scheme_percent", models.DecimalField(decimal_places=4, default=0, max_digits=7)),
                ("scheme_fixed", models.DecimalField(decimal_places=4, default=0, max_digits=12)),
                ("valid_from", models.DateField()),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="costs",
                        to="gateway.acquireraccount",
                    ),
                ),
            ],
            options={
                "ordering": ["account_id", "brand", "region", "level", "currency", "-valid_from"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "brand", "region", "level", "currency", "valid_from"),
                        name="acquirer_cost_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("fixed", 0), ("interchange_fixed", 0), ("scheme_fixed", 0)),
                            models.Q(("currency", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="acquirer_cost_fixed_has_currency",
                    ),
                ],
            },
        ),
    ]
