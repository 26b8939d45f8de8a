import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import gateway.core.identifiers
import reporting.settlement.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "__first__"),
        ("gateway", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReconciliationFile",
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
                        related_name="reconciliation_files",
                        to="gateway.merchant",
                    ),
                ),
                ("day", models.DateField()),
                ("begins_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("names", models.JSONField()),
                ("offset", models.DurationField()),
                ("lines", models.IntegerField(null=True)),
                ("size", models.BigIntegerField(null=True)),
                ("sha256", models.CharField(default="", max_length=64)),
                ("written_at", models.DateTimeField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("written_at__isnull", True)),
                        fields=["day"],
                        name="reconciliation_unwritten",
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("merchant", "day"), name="reconciliation_file_once")],
            },
        ),
        migrations.CreateModel(
            name="ReconciliationStart",
            fields=[
                (
                    "merchant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="gateway.merchant",
                    ),
                ),
                ("day", models.DateField()),
                ("offset", models.DurationField()),
            ],
        ),
        migrations.CreateModel(
            name="SftpTarget",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "merchant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="sftp_target", to="gateway.merchant"
                    ),
                ),
                ("host", models.CharField(max_length=255)),
                ("port", models.PositiveIntegerField(default=22)),
                ("username", models.CharField(max_length=64)),
                (
                    "secret_kind",
                    models.CharField(choices=[("password", "Password"), ("key", "private key")], max_length=8),
                ),
                ("secret_sealed", models.BinaryField()),
                ("host_key", models.CharField(max_length=1024)),
                ("folder", models.CharField(default=".", max_length=255)),
                ("active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name": "SFTP target",
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "file",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="delivery",
                        to="reporting.reconciliationfile",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("WAITING", "Waiting"), ("DONE", "Done"), ("FAILED", "given up")],
                        default="WAITING",
                        max_length=8,
                    ),
                ),
                ("attempts", models.SmallIntegerField(default=0)),
                ("due_at", models.DateTimeField()),
                ("lease_until", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "indexes": [
                    models.Index(condition=models.Q(("state", "WAITING")), fields=["due_at"], name="delivery_due")
                ],
            },
        ),
        migrations.CreateModel(
            name="DeliveryAttempt",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="tries", to="reporting.delivery"
                    ),
                ),
                ("number", models.SmallIntegerField()),
                ("target", models.CharField(max_length=400)),
                ("at", models.DateTimeField()),
                ("duration_ms", models.IntegerField()),
                ("why", models.CharField(default="", max_length=255)),
            ],
            options={
                "ordering": ["number"],
            },
        ),
        migrations.CreateModel(
            name="ClearingInstitute",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.entity_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("key", models.SlugField(max_length=32, unique=True)),
                ("name", models.CharField(max_length=64, unique=True)),
                (
                    "connectors",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), blank=True, default=list, size=None
                    ),
                ),
                ("format", models.CharField(blank=True, default="", max_length=32)),
                (
                    "time_zone",
                    models.CharField(
                        default="UTC", max_length=64, validators=[reporting.settlement.models.validate_time_zone]
                    ),
                ),
                ("fee_percent", models.DecimalField(blank=True, decimal_places=4, max_digits=7, null=True)),
                ("fee_fixed", models.DecimalField(blank=True, decimal_places=4, max_digits=10, null=True)),
                ("settles_within_days", models.PositiveSmallIntegerField(default=5)),
                (
                    "expects_files_on",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveSmallIntegerField(), blank=True, default=list, size=None
                    ),
                ),
                ("active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("reason_codes", models.JSONField(blank=True, default=dict)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="SettlementFile",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "institute",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="files",
                        to="reporting.clearinginstitute",
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("sha256", models.CharField(max_length=64)),
                ("size", models.BigIntegerField()),
                ("format", models.CharField(max_length=32)),
                ("time_zone", models.CharField(max_length=64)),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("upload", "Upload"),
                            ("command", "Command"),
                            ("folder", "Folder"),
                            ("sftp", "Sftp"),
                            ("ledger", "chargebacks that no file has told of"),
                        ],
                        max_length=8,
                    ),
                ),
                ("received_by", models.CharField(max_length=150)),
                ("received_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("RECEIVED", "waits to be read"),
                            ("READING", "is being read and matched"),
                            ("MATCHING", "is being matched by other than ids"),
                            ("BOOKING", "its chargebacks are being entered"),
                            ("DONE", "Done"),
                            ("FAILED", "cannot be read"),
                        ],
                        default="RECEIVED",
                        max_length=8,
                    ),
                ),
                ("why", models.CharField(blank=True, default="", max_length=500)),
                ("position", models.BigIntegerField(default=0)),
                ("lines", models.IntegerField(default=0)),
                ("records", models.IntegerField(default=0)),
                ("faults", models.IntegerField(default=0)),
                ("matched", models.IntegerField(default=0)),
                ("multiple", models.IntegerField(default=0)),
                ("unmatched", models.IntegerField(default=0)),
                ("book_line", models.IntegerField(default=0)),
                ("first_settled", models.DateField(null=True)),
                ("last_settled", models.DateField(null=True)),
                ("totals", models.JSONField(default=dict)),
                ("lease_until", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("match_line", models.IntegerField(default=0)),
                ("tries", models.SmallIntegerField(default=0)),
            ],
            options={
                "ordering": ["-received_at"],
                "indexes": [
                    models.Index(fields=["institute", "-received_at"], name="file_institute_time"),
                    models.Index(
                        condition=models.Q(("state__in", ["RECEIVED", "READING", "MATCHING", "BOOKING"])),
                        fields=["received_at"],
                        name="file_open",
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("institute", "sha256"), name="file_once")],
            },
        ),
        migrations.CreateModel(
            name="FilePiece",
            fields=[
                ("id", models.UUIDField(default=gateway.core.identifiers.row_id, primary_key=True, serialize=False)),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pieces",
                        to="reporting.settlementfile",
                    ),
                ),
                ("number", models.IntegerField()),
                ("sealed", models.BinaryField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("file", "number"), name="file_piece_number")],
            },
        ),
        migrations.CreateModel(
            name="Settlement",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "institute",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="reporting.clearinginstitute"
                    ),
                ),
                ("institute_merchant_id", models.CharField(max_length=64)),
                ("reference", models.CharField(max_length=64)),
                ("date", models.DateField()),
                ("currency", models.CharField(max_length=3)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
                ("account", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "payout",
                "indexes": [models.Index(fields=["merchant", "date"], name="settlement_merchant_date")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("institute", "institute_merchant_id", "reference", "date", "currency"),
                        name="settlement_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SettlementRecord",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "file",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="reporting.settlementfile",
                    ),
                ),
                ("line", models.IntegerField()),
                (
                    "settlement",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="records",
                        to="reporting.settlement",
                    ),
                ),
                (
                    "institute",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="reporting.clearinginstitute",
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="gateway.merchant",
                    ),
                ),
                ("account", models.UUIDField(null=True)),
                (
                    "institute_merchant_id",
                    models.CharField(max_length=64, validators=[django.core.validators.MinLengthValidator(5)]),
                ),
                (
                    "record_type",
                    models.CharField(
                        choices=[
                            ("SETTLED", "Settled"),
                            ("CHARGEBACK", "Chargeback"),
                            ("CHARGEBACK REVERSAL", "Chargeback Reversal"),
                            ("FEE", "Fee"),
                        ],
                        max_length=19,
                    ),
                ),
                (
                    "transaction_type",
                    models.CharField(
                        choices=[
                            ("DEBIT", "Debit"),
                            ("CREDIT", "Credit"),
                            ("REFUND", "Refund"),
                            ("BATCH", "Batch"),
                            ("MONTHLY", "Monthly"),
                            ("SUBMERCHANT", "Submerchant"),
                            ("PAYMENT_FACILITATOR", "Payment Facilitator"),
                            ("AUTH_FEE", "Auth Fee"),
                            ("CAPTURE_FEE", "Capture Fee"),
                            ("CANCEL_FEE", "Cancel Fee"),
                            ("REFUND_FEE", "Refund Fee"),
                        ],
                        max_length=20,
                    ),
                ),
                ("cashflow", models.CharField(choices=[("POS", "Pos"), ("NEG", "Neg")], max_length=3)),
                ("settlement_tx_id", models.CharField(default="", max_length=64)),
                ("our_id", models.UUIDField(null=True)),
                ("tx_id1", models.CharField(default="", max_length=64)),
                ("tx_id2", models.CharField(default="", max_length=64)),
                ("tx_id3", models.CharField(default="", max_length=64)),
                ("merchant_transaction_id", models.CharField(default="", max_length=255)),
                ("merchant_invoice_id", models.CharField(default="", max_length=255)),
                ("amount", reporting.settlement.models.SettlementAmountField(decimal_places=3, max_digits=17)),
                ("currency", models.CharField(max_length=3)),
                ("brand", models.CharField(default="", max_length=16)),
                ("presented_at", models.DateTimeField()),
                ("presented_at_known", models.BooleanField()),
                (
                    "settlement_amount",
                    reporting.settlement.models.SettlementAmountField(decimal_places=3, max_digits=17),
                ),
                ("settlement_currency", models.CharField(max_length=3)),
                ("settlement_fee", models.DecimalField(decimal_places=4, max_digits=16, null=True)),
                ("fx_rate", models.DecimalField(decimal_places=10, max_digits=20)),
                ("settlement_date", models.DateField()),
                ("settlement_status", models.CharField(max_length=7)),
                ("descriptor", models.CharField(default="", max_length=128)),
                ("last4", models.CharField(default="", max_length=4)),
                ("bank_code", models.CharField(default="", max_length=12)),
                ("account_holder", models.CharField(default="", max_length=128)),
                ("reason_code", models.CharField(default="", max_length=11)),
                ("reason_text", models.CharField(default="", max_length=128)),
                ("respond_by", models.DateField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("MATCHED", "Matched"),
                            ("MULTIPLE_MATCHES", "Multiple Matches"),
                            ("NOT_MATCHED", "Not Matched"),
                        ],
                        default="",
                        max_length=16,
                    ),
                ),
                ("without_payment", models.BooleanField(default=False)),
                ("version", models.IntegerField(default=1)),
                ("chargeback", models.UUIDField(null=True)),
                ("chargeback_at", models.DateTimeField(null=True)),
                ("recorded_at", models.DateTimeField()),
                ("assigned_at", models.DateTimeField(null=True)),
                ("arn", models.CharField(db_default="", default="", max_length=24)),
                ("dispute_stage", models.CharField(db_default="", default="", max_length=15)),
                ("scheme_case", models.CharField(db_default="", default="", max_length=64)),
                ("scheme_reason", models.CharField(db_default="", default="", max_length=16)),
            ],
            options={
                "verbose_name_plural": "exceptions",
                "indexes": [
                    models.Index(
                        condition=models.Q(("assigned_at__isnull", False)),
                        fields=["merchant", "assigned_at"],
                        name="record_assigned",
                    ),
                    models.Index(fields=["settlement", "line"], name="record_settlement"),
                    models.Index(
                        condition=models.Q(("record_type", "FEE"), models.Q(("settlement_tx_id", ""), _negated=True)),
                        fields=["institute", "settlement_tx_id", "transaction_type", "amount", "recorded_at", "line"],
                        name="record_fee_id",
                    ),
                    models.Index(
                        condition=models.Q(("record_type", "FEE"), ("settlement_tx_id", "")),
                        fields=["settlement", "transaction_type", "amount", "recorded_at", "line"],
                        name="record_fee_plain",
                    ),
                    models.Index(fields=["merchant", "recorded_at", "id"], name="record_merchant_recorded"),
                    models.Index(
                        condition=models.Q(
                            ("state__in", ["NOT_MATCHED", "MULTIPLE_MATCHES"]), ("without_payment", False)
                        ),
                        fields=["merchant", "id"],
                        name="record_open",
                    ),
                    models.Index(condition=models.Q(("arn", ""), _negated=True), fields=["arn"], name="record_arn"),
                    models.Index(
                        condition=models.Q(("tx_id1", ""), _negated=True), fields=["tx_id1"], name="record_tx_id"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("file", "line"), name="record_line"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("record_type__in", ["SETTLED", "CHARGEBACK", "CHARGEBACK REVERSAL", "FEE"])
                        ),
                        name="record_type_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "transaction_type__in",
                                [
                                    "DEBIT",
                                    "CREDIT",
                                    "REFUND",
                                    "BATCH",
                                    "MONTHLY",
                                    "SUBMERCHANT",
                                    "PAYMENT_FACILITATOR",
                                    "AUTH_FEE",
                                    "CAPTURE_FEE",
                                    "CANCEL_FEE",
                                    "REFUND_FEE",
                                ],
                            )
                        ),
                        name="record_transaction_type_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("cashflow__in", ["POS", "NEG"])), name="record_cashflow_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("settlement_status__in", ["SUCCESS", "FAILED"])), name="record_status_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("record_type", "FEE"), ("state", "")),
                            models.Q(
                                models.Q(("record_type", "FEE"), _negated=True),
                                ("state__in", ["MATCHED", "MULTIPLE_MATCHES", "NOT_MATCHED"]),
                            ),
                            _connector="OR",
                        ),
                        name="record_only_fees_have_no_matching",
                    ),
                    models.CheckConstraint(condition=models.Q(("amount__gte", 0)), name="record_amount_not_negative"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Match",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "record",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="matches",
                        to="reporting.settlementrecord",
                    ),
                ),
                ("payment", models.UUIDField()),
                (
                    "record_type",
                    models.CharField(
                        choices=[
                            ("SETTLED", "Settled"),
                            ("CHARGEBACK", "Chargeback"),
                            ("CHARGEBACK REVERSAL", "Chargeback Reversal"),
                            ("FEE", "Fee"),
                        ],
                        max_length=19,
                    ),
                ),
                ("chosen", models.BooleanField()),
                ("rule", models.CharField(max_length=12)),
                ("by", models.CharField(default="", max_length=150)),
                ("note", models.CharField(default="", max_length=500)),
                ("made_at", models.DateTimeField()),
                ("undone_at", models.DateTimeField(null=True)),
                ("undone_by", models.CharField(default="", max_length=150)),
            ],
            options={
                "verbose_name_plural": "matches",
                "indexes": [
                    models.Index(fields=["record"], name="match_record"),
                    models.Index(fields=["payment"], name="match_payment"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("chosen", True), ("undone_at__isnull", True)),
                        fields=("record",),
                        name="match_one_chosen",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Finding",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "record",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="findings",
                        to="reporting.settlementrecord",
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
                ("payment", models.UUIDField(null=True)),
                ("kind", models.CharField(max_length=24)),
                ("expected", models.CharField(default="", max_length=128)),
                ("found", models.CharField(default="", max_length=128)),
                ("made_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
                ("closed_by", models.CharField(default="", max_length=150)),
                ("note", models.CharField(default="", max_length=500)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["record"], name="finding_record"),
                    models.Index(
                        condition=models.Q(("closed_at__isnull", True)), fields=["merchant", "id"], name="finding_open"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LineError",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="errors",
                        to="reporting.settlementfile",
                    ),
                ),
                ("line", models.IntegerField()),
                ("column", models.CharField(max_length=64)),
                ("value", models.CharField(default="", max_length=64)),
                ("message", models.CharField(max_length=255)),
            ],
            options={
                "indexes": [models.Index(fields=["file", "line"], name="line_error_line")],
            },
        ),
        migrations.CreateModel(
            name="SftpSource",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "institute",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sftp_source",
                        to="reporting.clearinginstitute",
                    ),
                ),
                ("host", models.CharField(max_length=255)),
                ("port", models.PositiveIntegerField(default=22)),
                ("username", models.CharField(max_length=64)),
                (
                    "secret_kind",
                    models.CharField(choices=[("password", "Password"), ("key", "private key")], max_length=8),
                ),
                ("secret_sealed", models.BinaryField()),
                ("host_key", models.CharField(max_length=1024)),
                ("folder", models.CharField(default=".", max_length=255)),
                ("pattern", models.CharField(default="*", max_length=64)),
                (
                    "after_download",
                    models.CharField(
                        choices=[("leave", "leave it there"), ("move", "move it to another folder")],
                        default="leave",
                        max_length=5,
                    ),
                ),
                ("moved_to", models.CharField(default="done", max_length=64)),
                ("every_s", models.PositiveIntegerField(default=300)),
                ("active", models.BooleanField(default=True)),
                ("due_at", models.DateTimeField()),
                ("lease_until", models.DateTimeField(null=True)),
                ("polled_at", models.DateTimeField(null=True)),
                ("failures", models.IntegerField(default=0)),
                ("why", models.CharField(default="", max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name": "SFTP source",
                "indexes": [
                    models.Index(condition=models.Q(("active", True)), fields=["due_at"], name="sftp_source_due")
                ],
            },
        ),
        migrations.CreateModel(
            name="RemoteFile",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="files",
                        to="reporting.sftpsource",
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("size", models.BigIntegerField()),
                ("modified", models.BigIntegerField()),
                ("seen_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[("SEEN", "waits until it is whole"), ("TAKEN", "taken in"), ("REFUSED", "Refused")],
                        default="SEEN",
                        max_length=7,
                    ),
                ),
                ("why", models.CharField(default="", max_length=500)),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="reporting.settlementfile",
                    ),
                ),
                ("moved_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["-seen_at"],
                "indexes": [models.Index(fields=["source", "-seen_at"], name="remote_file_time")],
                "constraints": [models.UniqueConstraint(fields=("source", "name"), name="remote_file_once")],
            },
        ),
        migrations.CreateModel(
            name="MissingSettlement",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "institute",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="reporting.clearinginstitute"
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
                ("day", models.DateField()),
                ("payments", models.IntegerField()),
                ("sums", models.JSONField(default=dict)),
                ("counted_at", models.DateTimeField()),
                ("tries", models.SmallIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                ("sent_at", models.DateTimeField(null=True)),
                ("sent_to", models.CharField(default="", max_length=1000)),
            ],
            options={
                "verbose_name_plural": "missing settlements",
                "indexes": [
                    models.Index(
                        condition=models.Q(("payments__gt", 0)), fields=["merchant"], name="missing_settlement_now"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("institute", "merchant", "day"), name="missing_settlement_once_a_day"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MonthClosing",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("month", models.DateField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("PREPARED", "waits for a second person"),
                            ("SIGNED", "closed"),
                            ("RETURNED", "returned"),
                            ("WITHDRAWN", "withdrawn"),
                            ("REOPENED", "reopened"),
                        ],
                        default="PREPARED",
                        max_length=9,
                    ),
                ),
                ("figures", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                ("answer", models.CharField(blank=True, default="", max_length=500)),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
                ("prepared_by_name", models.CharField(max_length=150)),
                ("prepared_at", models.DateTimeField()),
                ("signed_by_name", models.CharField(default="", max_length=150)),
                ("signed_at", models.DateTimeField(null=True)),
                ("reopened_by_name", models.CharField(default="", max_length=150)),
                ("reopened_at", models.DateTimeField(null=True)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
                (
                    "prepared_by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "reopened_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "signed_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "month",
                "verbose_name_plural": "months",
                "indexes": [models.Index(fields=["merchant", "-month", "-prepared_at"], name="month_closing_merchant")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ["PREPARED", "SIGNED"])),
                        fields=("merchant", "month"),
                        name="month_closing_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("signed_by", None),
                            models.Q(("signed_by", models.F("prepared_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="month_closing_two_people",
                    ),
                    models.CheckConstraint(condition=models.Q(("month__day", 1)), name="month_closing_first_day"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RateAlarm",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=8)),
                ("segment", models.CharField(max_length=100)),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("attempts", models.IntegerField()),
                ("approved", models.IntegerField()),
                ("before_attempts", models.IntegerField()),
                ("before_approved", models.IntegerField()),
                ("chance", models.FloatField()),
                ("found_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="gateway.merchant"
                    ),
                ),
            ],
            options={
                "verbose_name": "alarm of the approval rate",
                "verbose_name_plural": "alarms of the approval rate",
                "indexes": [models.Index(fields=["merchant", "-found_at"], name="rate_alarm_merchant")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("merchant", "kind", "segment"),
                        name="rate_alarm_open_once",
                    )
                ],
            },
        ),
    ]
