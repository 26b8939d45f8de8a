"""States of chains, and the database's own derivation of them (docs/decisions/0076); preferences of users; the reason of
an approval."""

import django.db.models.deletion
import django.db.models.functions.datetime
from typing import ClassVar

from django.conf import settings
from django.db import migrations, models

# Amounts of approved payments alone: what is on its way has moved nothing. A receipt (RC) of an authorization is paid
# money; one of a debit or capture records money that is counted already. A payment that was disputed keeps that state
# until all of it has gone back to the shopper.
_DERIVE = """
CREATE FUNCTION gateway_chain_state(asked uuid, disputed boolean, expired boolean) RETURNS text
STABLE LANGUAGE sql AS $$
WITH member AS (
    SELECT m.id, m.payment_type AS type, coalesce(m.approved, m.amount) AS amount, m.practice, m.final, m.max_captures,
           f.payment_type AS followed
    FROM gateway_payment m LEFT JOIN gateway_payment f ON f.id = m.referenced
    WHERE m.chain = asked AND m.status = 'APPROVED'
), total AS (
    SELECT
        coalesce(bool_or(type = 'PA'), false) AS held,
        coalesce(bool_or(type = 'CD'), false) AS credited,
        coalesce(sum(amount) FILTER (WHERE type = 'PA' AND (id = asked OR practice = 'INCREMENTAL_AUTH')), 0)
            AS authorized,
        coalesce(sum(amount) FILTER (WHERE type = 'RV' AND followed = 'PA'), 0) AS released,
        coalesce(sum(amount) FILTER (WHERE type IN ('CP', 'RC') AND followed = 'PA'), 0) AS drawn,
        coalesce(sum(amount) FILTER (WHERE type IN ('DB', 'CP', 'RB') OR (type = 'RC' AND followed = 'PA')), 0) AS paid,
        coalesce(sum(amount) FILTER (WHERE type = 'RF'), 0) AS refunded,
        coalesce(sum(amount) FILTER (WHERE type = 'RV' AND followed <> 'PA'), 0) AS undone,
        coalesce(sum(amount) FILTER (WHERE type = 'CB'), 0) - coalesce(sum(amount) FILTER (WHERE type = 'CR'), 0)
            AS charged_back,
        coalesce(bool_or(type = 'CB'), false) AS contested,
        coalesce(bool_or(final AND followed = 'PA' AND type IN ('CP', 'RV')), false)
            OR coalesce(count(*) FILTER (WHERE type = 'CP') >= max(max_captures) FILTER (WHERE id = asked), false)
            AS closed
    FROM member
)
SELECT CASE
    WHEN disputed THEN 'disputed'
    WHEN charged_back > 0 THEN 'charged_back'
    WHEN paid > 0 AND refunded + undone >= paid THEN CASE WHEN refunded > 0 THEN 'refunded' ELSE 'voided' END
    WHEN contested THEN 'won_back'
    WHEN credited THEN CASE WHEN undone > 0 THEN 'voided' ELSE 'paid_out' END
    WHEN refunded + undone > 0 THEN 'partly_refunded'
    WHEN paid > 0 THEN CASE
        WHEN held AND NOT closed AND NOT expired AND drawn + released < authorized THEN 'partly_captured'
        ELSE 'captured' END
    WHEN expired THEN 'expired'
    WHEN closed OR (released > 0 AND released >= authorized) THEN 'voided'
    ELSE 'authorized'
END FROM total
$$
"""
# A row trigger of an update holds the row's lock, and its statements see what was committed until then: of two
# approvals at once the second derives from both.
_FILL = """
CREATE FUNCTION gateway_fill_chain_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.state := gateway_chain_state(NEW.chain_id, NEW.disputed, NEW.expired);
    RETURN NEW;
END $$;
CREATE TRIGGER chain_state_filled BEFORE INSERT OR UPDATE ON gateway_chainstate
    FOR EACH ROW EXECUTE FUNCTION gateway_fill_chain_state();
"""
_FOLLOW = """
CREATE FUNCTION gateway_follow_chain() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A renewal ends an expiry.
    UPDATE gateway_chainstate SET state = '', expired = expired AND NEW.payment_type <> 'PA' WHERE chain_id = NEW.chain;
    IF NOT FOUND THEN
        INSERT INTO gateway_chainstate (chain_id, merchant_id, created_at, state)
        SELECT id, merchant_id, created_at, '' FROM gateway_payment WHERE id = NEW.chain
        ON CONFLICT (chain_id) DO UPDATE SET state = '';
    END IF;
    RETURN NULL;
END $$
"""
_MOVES_A_CHAIN = """
    NEW.status = 'APPROVED' AND (
        NEW.payment_type = 'PA'
        OR (NEW.chain <> NEW.id AND NEW.payment_type IN ('CP', 'RF', 'RV', 'RB', 'RC', 'CB', 'CR'))
    )
"""
_TRIGGERS = f"""
CREATE TRIGGER chain_moved_by_insert AFTER INSERT ON gateway_payment
    FOR EACH ROW WHEN ({_MOVES_A_CHAIN}) EXECUTE FUNCTION gateway_follow_chain();
CREATE TRIGGER chain_moved_by_update AFTER UPDATE OF status ON gateway_payment
    FOR EACH ROW WHEN (OLD.status <> 'APPROVED' AND {_MOVES_A_CHAIN}) EXECUTE FUNCTION gateway_follow_chain();
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("gateway", "0002_safeguards"),
    ]

    operations: ClassVar = [
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
            ],
            options={
                "verbose_name": "preference",
                "verbose_name_plural": "preferences",
            },
        ),
        migrations.AddField(
            model_name="approval",
            name="reason",
            field=models.CharField(blank=True, db_default="", default="", max_length=9),
        ),
        migrations.AddField(
            model_name="webhookattempt",
            name="tried_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
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
        migrations.RunSQL(_DERIVE, "DROP FUNCTION gateway_chain_state(uuid, boolean, boolean)"),
        migrations.RunSQL(_FILL, "DROP FUNCTION gateway_fill_chain_state() CASCADE"),
        migrations.RunSQL(_FOLLOW, "DROP FUNCTION gateway_follow_chain() CASCADE"),
        migrations.RunSQL(_TRIGGERS, migrations.RunSQL.noop),
    ]
