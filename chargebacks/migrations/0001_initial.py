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
            name="Chargeback",
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
                ("disputed", models.UUIDField()),
                ("chain", models.UUIDField()),
                (
                    "previous",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="next",
                        to="chargebacks.chargeback",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("OPEN", "waits for evidence"),
                            ("SUBMITTED", "evidence was submitted"),
                            ("WON", "the money came back"),
                            ("LOST", "the money is gone"),
                            ("ACCEPTED", "the merchant did not contest it"),
                            ("RETURNED", "returned by the debtor's bank, which cannot be contested"),
                        ],
                        max_length=9,
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("file", "settlement file"),
                            ("hand", "entered by hand"),
                            ("api", "by API, test environment"),
                        ],
                        max_length=4,
                    ),
                ),
                ("reason_code", models.CharField(max_length=11)),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("recovered", models.DecimalField(decimal_places=2, default=0, max_digits=14)),
                ("brand", models.CharField(max_length=32)),
                ("test_mode", models.CharField(default="", max_length=8)),
                ("reference", models.CharField(default="", max_length=64)),
                ("opened_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("submitted_at", models.DateTimeField(null=True)),
                ("closed_at", models.DateTimeField(null=True)),
                ("note", models.CharField(default="", max_length=500)),
                ("version", models.IntegerField(default=1)),
                ("arn", models.CharField(db_default="", default="", max_length=64)),
                ("refunded_before", models.DecimalField(db_default=0, decimal_places=2, default=0, max_digits=14)),
                ("scheme_case", models.CharField(db_default="", default="", max_length=64)),
                ("scheme_reason", models.CharField(db_default="", default="", max_length=16)),
                (
                    "stage",
                    models.CharField(
                        choices=[
                            ("FIRST", "first chargeback"),
                            ("PRE_ARBITRATION", "pre-arbitration"),
                            ("ARBITRATION", "arbitration"),
                        ],
                        db_default="FIRST",
                        default="FIRST",
                        max_length=15,
                    ),
                ),
                ("stops_pending", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "verbose_name": "dispute",
                "indexes": [
                    models.Index(fields=["merchant", "-opened_at"], name="chargeback_merchant_time"),
                    models.Index(fields=["chain"], name="chargeback_chain"),
                    models.Index(condition=models.Q(("state", "OPEN")), fields=["due_at"], name="chargeback_due"),
                    models.Index(condition=models.Q(("stops_pending", True)), fields=["id"], name="chargeback_stops"),
                ],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("amount__gt", 0)), name="chargeback_amount_above_zero"),
                    models.CheckConstraint(
                        condition=models.Q(("recovered__gte", 0), ("recovered__lte", models.F("amount"))),
                        name="chargeback_recovered_within_amount",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["OPEN", "SUBMITTED", "WON", "LOST", "ACCEPTED", "RETURNED"])),
                        name="chargeback_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CaseEvent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "case",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="chargebacks.chargeback",
                    ),
                ),
                ("sequence", models.IntegerField()),
                ("event", models.CharField(max_length=8)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("OPEN", "waits for evidence"),
                            ("SUBMITTED", "evidence was submitted"),
                            ("WON", "the money came back"),
                            ("LOST", "the money is gone"),
                            ("ACCEPTED", "the merchant did not contest it"),
                            ("RETURNED", "returned by the debtor's bank, which cannot be contested"),
                        ],
                        max_length=9,
                    ),
                ),
                ("payment", models.UUIDField(null=True, unique=True)),
                ("by", models.CharField(default="", max_length=150)),
                ("note", models.CharField(default="", max_length=500)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("case", "sequence"), name="case_event_sequence")],
            },
        ),
        migrations.CreateModel(
            name="AcquirerNotice",
            fields=[
                ("reference", models.UUIDField(primary_key=True, serialize=False)),
                ("payment", models.UUIDField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="Evidence",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="evidence",
                        to="chargebacks.chargeback",
                    ),
                ),
                ("item", models.CharField(max_length=32)),
                ("name", models.CharField(max_length=128)),
                ("content_type", models.CharField(max_length=32)),
                ("size", models.IntegerField()),
                ("sha256", models.CharField(max_length=64)),
                ("by", models.CharField(max_length=150)),
                ("added_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "evidence",
                "constraints": [models.UniqueConstraint(fields=("case", "sha256"), name="evidence_once")],
            },
        ),
        migrations.CreateModel(
            name="EvidencePiece",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "evidence",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pieces",
                        to="chargebacks.evidence",
                    ),
                ),
                ("number", models.IntegerField()),
                ("sealed", models.BinaryField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("evidence", "number"), name="evidence_piece_number")],
            },
        ),
        migrations.CreateModel(
            name="Reminder",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "case",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reminders",
                        to="chargebacks.chargeback",
                    ),
                ),
                ("days", models.SmallIntegerField()),
                ("due_at", models.DateTimeField()),
                ("lease_until", models.DateTimeField(null=True)),
                ("tries", models.SmallIntegerField(default=0)),
                ("sent_at", models.DateTimeField(null=True)),
                ("sent_to", models.CharField(default="", max_length=1000)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("sent_at__isnull", True)), fields=["due_at"], name="reminder_due")
                ],
                "constraints": [models.UniqueConstraint(fields=("case", "days"), name="reminder_once")],
            },
        ),
        migrations.CreateModel(
            name="Contact",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "merchant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dispute_contacts",
                        to="gateway.merchant",
                    ),
                ),
                ("email", models.EmailField(max_length=254)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("merchant", "email"), name="dispute_contact_once")],
            },
        ),
        migrations.CreateModel(
            name="DisputeAlert",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("disputed", models.UUIDField(db_index=True)),
                ("chain", models.UUIDField()),
                (
                    "kind",
                    models.CharField(
                        choices=[("ALERT", "alert before a dispute"), ("INQUIRY", "inquiry (retrieval request)")],
                        max_length=7,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("OPEN", "waits for a decision"),
                            ("REFUNDING", "the refund is being sent"),
                            ("REFUNDED", "refunded"),
                            ("LET_GO", "let go"),
                            ("ANSWERED", "documents were sent"),
                            ("EXPIRED", "not answered in time"),
                            ("DISPUTED", "a chargeback came"),
                        ],
                        max_length=9,
                    ),
                ),
                ("provider", models.CharField(max_length=32)),
                ("reference", models.CharField(max_length=64)),
                ("reason_code", models.CharField(max_length=11)),
                ("scheme_reason", models.CharField(default="", max_length=16)),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("opened_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
                ("moved_at", models.DateTimeField()),
                ("refund", models.UUIDField(null=True)),
                ("refund_by", models.CharField(default="", max_length=150)),
                ("chargeback", models.UUIDField(null=True)),
                ("note", models.CharField(default="", max_length=500)),
                ("version", models.IntegerField(default=1)),
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
                ("remind_at", models.DateTimeField(null=True)),
                ("remind_lease", models.DateTimeField(null=True)),
                ("remind_tries", models.SmallIntegerField(default=0)),
            ],
            options={
                "verbose_name": "alert",
                "indexes": [
                    models.Index(fields=["merchant", "-opened_at"], name="alert_merchant_time"),
                    models.Index(
                        condition=models.Q(("state__in", ["OPEN", "REFUNDING"])), fields=["due_at"], name="alert_open"
                    ),
                    models.Index(
                        condition=models.Q(("remind_at__isnull", False), ("state", "OPEN")),
                        fields=["remind_at"],
                        name="alert_reminder_due",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("merchant", "provider", "reference"), name="alert_once"),
                    models.CheckConstraint(condition=models.Q(("amount__gt", 0)), name="alert_amount_above_zero"),
                ],
            },
        ),
    ]
