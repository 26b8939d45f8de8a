import django.contrib.postgres.fields
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
            name="Job",
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
                        related_name="jobs",
                        to="gateway.merchant",
                    ),
                ),
                (
                    "channel",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="gateway.channel",
                    ),
                ),
                ("registration", models.UUIDField()),
                ("agreement", models.UUIDField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("ACTIVE", "Active"),
                            ("ENDING", "notice was given: it runs until ends_at"),
                            ("SUSPENDED", "it waits for the merchant: reschedule takes it up again"),
                            ("ENDED", "Ended"),
                        ],
                        default="ACTIVE",
                        max_length=9,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "None"),
                            ("NOTICE", "notice was given"),
                            ("COMPLETED", "its time was over"),
                            ("DECLINED", "it was declined too often"),
                            ("DO_NOT_RETRY", "the issuer or the bank forbids another try"),
                            ("AUTHENTICATION_NEEDED", "the issuer wants the shopper to confirm"),
                            ("CARD_EXPIRED", "Card Expired"),
                            ("REGISTRATION_GONE", "the registration was deleted or is past its retention period"),
                            ("AGREEMENT_ENDED", "the standing instruction allows no further payment"),
                            ("PAUSED", "somebody paused it"),
                            ("NOT_SET_UP", "the channel does not take this payment any more"),
                        ],
                        default="",
                        max_length=24,
                    ),
                ),
                ("name", models.CharField(blank=True, default="", max_length=64)),
                ("payment_type", models.CharField(max_length=2)),
                ("amount", models.DecimalField(decimal_places=2, max_digits=14)),
                ("currency", models.CharField(max_length=3)),
                ("test_mode", models.CharField(blank=True, default="", max_length=8)),
                ("request", models.JSONField(default=dict)),
                ("merchant_memo", models.CharField(blank=True, default="", max_length=255)),
                ("expression", models.CharField(max_length=256)),
                ("zone", models.CharField(max_length=64)),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField(null=True)),
                ("duration_unit", models.CharField(blank=True, default="", max_length=6)),
                ("duration_number", models.BigIntegerField(default=0)),
                ("notice_unit", models.CharField(blank=True, default="", max_length=6)),
                ("notice_number", models.BigIntegerField(default=0)),
                (
                    "notice_callable",
                    models.CharField(
                        blank=True,
                        choices=[("", "no notice period"), ("ANYTIME", "Anytime"), ("DURATION_END", "Duration End")],
                        default="",
                        max_length=12,
                    ),
                ),
                ("next_at", models.DateTimeField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("declined", models.SmallIntegerField(default=0)),
                ("late", models.SmallIntegerField(default=0)),
                ("sequence", models.IntegerField(default=1)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="job_due"),
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)),
                        fields=["merchant", "next_at"],
                        name="job_merchant_due",
                    ),
                    models.Index(fields=["merchant", "-created_at"], name="job_merchant_time"),
                    models.Index(fields=["registration"], name="job_registration"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("next_at__isnull", False), ("state__in", ("ACTIVE", "ENDING"))),
                            models.Q(("next_at__isnull", True), ("state__in", ("SUSPENDED", "ENDED"))),
                            _connector="OR",
                        ),
                        name="job_live_has_next",
                    ),
                    models.CheckConstraint(condition=models.Q(("amount__gt", 0)), name="job_amount_positive"),
                ],
            },
        ),
        migrations.CreateModel(
            name="JobRun",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=gateway.core.identifiers.row_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="scheduling.job",
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
                ("due_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("OPEN", "paying, or its outcome is not known yet"),
                            ("PAID", "Paid"),
                            ("RETRYING", "declined: it is tried again"),
                            ("FAILED", "Failed"),
                            ("SKIPPED", "the channel was switched off"),
                            ("MISSED", "too late to be made up for"),
                        ],
                        max_length=8,
                    ),
                ),
                ("attempt", models.SmallIntegerField(default=1)),
                ("payment", models.UUIDField(null=True)),
                (
                    "earlier",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), blank=True, default=list, size=None
                    ),
                ),
                ("code", models.CharField(blank=True, default="", max_length=11)),
                ("next_at", models.DateTimeField(null=True)),
                ("missed_until", models.DateTimeField(null=True)),
                ("retry_choices", models.JSONField(blank=True, db_default=[], default=list)),
                ("lease_until", models.DateTimeField(null=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)),
                        fields=["merchant", "next_at"],
                        name="run_merchant_due",
                    ),
                    models.Index(condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="run_due"),
                    models.Index(
                        condition=models.Q(("payment__isnull", False)), fields=["payment"], name="run_payment"
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("job", "due_at"), name="run_once")],
            },
        ),
        migrations.CreateModel(
            name="RetryRate",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("cell", models.CharField(max_length=7)),
                ("code", models.CharField(blank=True, default="", max_length=11)),
                ("advice", models.CharField(blank=True, default="", max_length=2)),
                ("issuer", models.CharField(blank=True, default="", max_length=128)),
                ("value", models.SmallIntegerField(default=0)),
                ("tries", models.IntegerField()),
                ("approved", models.IntegerField()),
                ("expected", models.FloatField()),
                ("counted_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("issuer", "cell", "code", "advice", "value"), name="retry_rate_once"
                    )
                ],
            },
        ),
    ]
