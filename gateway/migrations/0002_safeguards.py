"""What the models cannot say, and the guards of their Meta (gateway.db.guards)."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import migrations
from pgtrigger.compiler import Trigger
from pgtrigger.migrations import AddTrigger

from gateway.db.guards import GuardSql

# Rows that live for milliseconds or days: with the default, vacuum waits until a fifth of the table is dead, and every
# query of the queue reads the dead ones.
_QUEUES = (
    "gateway_openpayment",
    "gateway_suspension",
    "gateway_idempotencykey",
    "gateway_throttlewindow",
    "gateway_cardtestingcount",
    "gateway_webhookdelivery",
)
_VACUUM_SOON = "SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)"
_VACUUM_AS_EVER = "RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay)"

# Counts of the current moment: not worth a write-ahead log, and empty after a crash is right.
_UNLOGGED = ("gateway_throttlewindow", "gateway_cardtestingcount")


def remember_environment(apps: Any, editor: Any) -> None:
    """The environment the database belongs to, for good: a function, so that there is no row that could be changed.
    Read by gateway.db.environment alone."""
    name = "live" if settings.IS_LIVE else "test"
    editor.execute(
        f"CREATE FUNCTION gateway_environment() RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$SELECT '{name}'$$"
    )


def forget_environment(apps: Any, editor: Any) -> None:
    editor.execute("DROP FUNCTION gateway_environment()")


# Amounts of approved payments alone: what is on its way has moved nothing, nor has a refund that its bank returned. A receipt (RC) of an authorization is paid
# money; one of a debit or capture records money that is counted already. What a reversal gave back to the hold counts as
# never captured. A payment that was disputed keeps that state
# until all of it has gone back to the shopper.
_DERIVE_CHAIN_STATE = """
CREATE FUNCTION gateway_chain_state(asked uuid, disputed boolean, expired boolean) RETURNS text
STABLE LANGUAGE sql AS $$
WITH member AS (
    SELECT m.id, m.payment_type AS type, coalesce(m.approved_amount, m.amount) AS amount, m.practice, m.final, m.max_captures,
           f.payment_type AS followed, m.returned_at IS NOT NULL AS returned,
           CASE WHEN m.reopens_authorization AND m.returned_at IS NULL THEN coalesce(m.approved_amount, m.amount) ELSE 0 END AS reopened
    FROM gateway_payment m LEFT JOIN gateway_payment f ON f.id = m.referenced
    WHERE m.chain = asked AND m.status = 'APPROVED'
), total AS (
    SELECT
        coalesce(bool_or(type = 'PA'), false) AS held,
        coalesce(bool_or(type = 'CD'), false) AS credited,
        coalesce(bool_or(type = 'CD' AND returned), false) AS came_back,
        coalesce(sum(amount) FILTER (WHERE type = 'PA' AND (id = asked OR practice = 'INCREMENTAL_AUTH')), 0)
            AS authorized,
        coalesce(sum(amount) FILTER (WHERE type = 'RV' AND followed = 'PA' AND NOT returned), 0) AS released,
        coalesce(sum(amount) FILTER (WHERE type IN ('CP', 'RC') AND followed = 'PA'), 0) - coalesce(sum(reopened), 0)
            AS drawn,
        coalesce(sum(amount) FILTER (WHERE type IN ('DB', 'CP', 'RB') OR (type = 'RC' AND followed = 'PA')), 0)
            - coalesce(sum(reopened), 0) AS paid,
        coalesce(sum(amount) FILTER (WHERE type = 'RF' AND NOT returned), 0) AS refunded,
        coalesce(sum(amount - reopened) FILTER (WHERE type = 'RV' AND followed <> 'PA' AND NOT returned), 0) AS undone,
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
    WHEN credited THEN CASE WHEN undone > 0 OR came_back THEN 'voided' ELSE 'paid_out' END
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
_FILL_CHAIN_STATE = """
CREATE FUNCTION gateway_fill_chain_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.state := gateway_chain_state(NEW.chain_id, NEW.disputed, NEW.expired);
    RETURN NEW;
END $$;
CREATE TRIGGER chain_state_filled BEFORE INSERT OR UPDATE ON gateway_chainstate
    FOR EACH ROW EXECUTE FUNCTION gateway_fill_chain_state();
"""
_FOLLOW_CHAIN = """
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
        (NEW.payment_type = 'PA' AND NEW.amount > 0)
        OR (NEW.chain <> NEW.id AND NEW.payment_type IN ('CP', 'RF', 'RV', 'RB', 'RC', 'CB', 'CR'))
    )
"""
_CHAIN_TRIGGERS = f"""
CREATE TRIGGER chain_moved_by_insert AFTER INSERT ON gateway_payment
    FOR EACH ROW WHEN ({_MOVES_A_CHAIN}) EXECUTE FUNCTION gateway_follow_chain();
CREATE TRIGGER chain_moved_by_update AFTER UPDATE OF status ON gateway_payment
    FOR EACH ROW WHEN (OLD.status <> 'APPROVED' AND {_MOVES_A_CHAIN}) EXECUTE FUNCTION gateway_follow_chain();
CREATE TRIGGER chain_moved_by_return AFTER UPDATE OF returned_at ON gateway_payment
    FOR EACH ROW WHEN (OLD.returned_at IS NULL AND NEW.returned_at IS NOT NULL) EXECUTE FUNCTION gateway_follow_chain();
"""


def _partition(table: str, key: str, indexes: tuple[tuple[str, str, str], ...]) -> migrations.RunSQL:
    """``indexes``: name, columns and condition, word in the name of the first partition's."""
    first, whole = f"{table}_first", f"{table}_whole"
    named = [(f"{table}_pkey", f"{first}_pkey"), *((name, f"{first}_{words}_idx") for name, _, words in indexes)]
    primary = "payment_id, id" if key == "payment_id" else key
    there = [
        f"ALTER TABLE {table} RENAME TO {first}",
        *(f"ALTER INDEX {name} RENAME TO {other}" for name, other in named),
        f"CREATE TABLE {table} (LIKE {first} INCLUDING DEFAULTS, PRIMARY KEY ({primary})) PARTITION BY RANGE ({key})",
        *(f"CREATE INDEX {name} ON {table} {columns}" for name, columns, _ in indexes),
        f"ALTER TABLE {table} ATTACH PARTITION {first} FOR VALUES FROM (MINVALUE) TO (MAXVALUE)",
    ]
    back = [
        f"CREATE TABLE {whole} (LIKE {table} INCLUDING DEFAULTS)",
        f"INSERT INTO {whole} SELECT * FROM {table}",  # noqa: S608 - names of ours
        f"DROP TABLE {table}",
        f"ALTER TABLE {whole} RENAME TO {table}",
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_pkey PRIMARY KEY ({primary})",
        *(f"CREATE INDEX {name} ON {table} {columns}" for name, columns, _ in indexes),
    ]
    return migrations.RunSQL(tuple(there), tuple(back))


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0001_initial")]

    operations: ClassVar = [
        AddTrigger(
            model_name="auditentry",
            trigger=Trigger(
                name="append_only",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="9fd647945aa8e2a0553b1bb6263f1255e051c11d",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_08697",
                    table="gateway_auditentry",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="auditentry",
            trigger=Trigger(
                name="never_emptied",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="83190c464f4c962da9a5367ca3b022ece476d241",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_6e9e7",
                    table="gateway_auditentry",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="auditseal",
            trigger=Trigger(
                name="append_only",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="47a2f7a916497e01f20b14cabef1403788feebb7",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_a740f",
                    table="gateway_auditseal",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="auditseal",
            trigger=Trigger(
                name="never_emptied",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="ebb346ced539ab994aca5f61beb3382cb6a0acf7",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_daae7",
                    table="gateway_auditseal",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="merchant",
            trigger=Trigger(
                name="never_deleted",
                sql=GuardSql(
                    func="RAISE EXCEPTION 'rows of % are never deleted: make it inactive', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="434bd05f78591dd17b25bd56098422ec98b7ae45",
                    operation="DELETE",
                    pgid="pgtrigger_never_deleted_5b66a",
                    table="gateway_merchant",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="channel",
            trigger=Trigger(
                name="never_deleted",
                sql=GuardSql(
                    func="RAISE EXCEPTION 'rows of % are never deleted: make it inactive', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="7e8c8d695494bddbaa07403ce80599ac567dfbc4",
                    operation="DELETE",
                    pgid="pgtrigger_never_deleted_5ff24",
                    table="gateway_channel",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="paymentevent",
            trigger=Trigger(
                name="append_only",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="444c127d0e64779fcfa6f1cfdabd440562afd88e",
                    operation="UPDATE",
                    pgid="pgtrigger_append_only_560ef",
                    table="gateway_paymentevent",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="paymentevent",
            trigger=Trigger(
                name="only_moved",
                sql=GuardSql(
                    func="IF EXISTS (SELECT 1 FROM gateway_archivedpayment WHERE id = OLD.payment_id) THEN RETURN OLD; END IF; RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="2929115c9c3ae6693aaad66edf4e8ee7e49f129c",
                    operation="DELETE",
                    pgid="pgtrigger_only_moved_1aa78",
                    table="gateway_paymentevent",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="paymentevent",
            trigger=Trigger(
                name="never_emptied",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="33c862883537b765f741d836f43be32a073c864a",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_fe101",
                    table="gateway_paymentevent",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="erasurerequest",
            trigger=Trigger(
                name="never_deleted",
                sql=GuardSql(
                    func="RAISE EXCEPTION 'rows of % are never deleted: make it inactive', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="dff7c57ff68d87c99c599489cecfca04fea2a822",
                    operation="DELETE",
                    pgid="pgtrigger_never_deleted_1f726",
                    table="gateway_erasurerequest",
                    when="BEFORE",
                ),
            ),
        ),
        *(
            migrations.RunSQL(f"ALTER TABLE {table} SET UNLOGGED", f"ALTER TABLE {table} SET LOGGED")
            for table in _UNLOGGED
        ),
        *(
            migrations.RunSQL(f"ALTER TABLE {table} {_VACUUM_SOON}", f"ALTER TABLE {table} {_VACUUM_AS_EVER}")
            for table in _QUEUES
        ),
        # Each attempt updates its delivery's row: room on its page, so that no index has to follow.
        migrations.RunSQL(
            "ALTER TABLE gateway_webhookdelivery SET (fillfactor = 70)",
            "ALTER TABLE gateway_webhookdelivery RESET (fillfactor)",
        ),
        migrations.RunSQL(
            "INSERT INTO gateway_fanoutposition (id, position, gaps) VALUES (1, 0, '[]')",
            "DELETE FROM gateway_fanoutposition",
        ),
        migrations.RunPython(remember_environment, forget_environment),
        # The state of a chain is derived by the database (docs/decisions/0076).
        migrations.RunSQL(_DERIVE_CHAIN_STATE, "DROP FUNCTION gateway_chain_state(uuid, boolean, boolean)"),
        migrations.RunSQL(_FILL_CHAIN_STATE, "DROP FUNCTION gateway_fill_chain_state() CASCADE"),
        migrations.RunSQL(_FOLLOW_CHAIN, "DROP FUNCTION gateway_follow_chain() CASCADE"),
        migrations.RunSQL(_CHAIN_TRIGGERS, migrations.RunSQL.noop),
        # The request log and the acquirer exchanges in partitions (gateway.db.partitions): no row is copied, the table
        # becomes the first partition of its successor.
        _partition("gateway_requestlog", "id", (("request_entity_id", "(entity_id, id)", "entity_id_id"),)),
        _partition("gateway_acquirerexchange", "payment_id", ()),
        _partition(
            "gateway_archivedpayment",
            "id",
            (
                ("archived_payment_chain", "(chain)", "chain"),
                ("archived_payment_number", "(number)", "number"),
                ("archived_payment_order", "(merchant_transaction_id, merchant_id)", "order"),
                ("archived_payment_invoice", "(merchant_invoice_id, merchant_id)", "invoice"),
                ("archived_payment_made", "(created_at, merchant_id)", "made"),
                ("archived_payment_time", "(channel_id, created_at)", "time"),
                (
                    "archived_payment_type",
                    "(channel_id, payment_type, created_at) WHERE NOT (payment_type IN ('DB', 'PA', 'CP'))",
                    "type",
                ),
                ("archived_payment_method", "(channel_id, method, created_at) WHERE NOT (method = 'CC')", "method"),
            ),
        ),
        # After it became the first partition: on the whole table they are on each partition, too.
        AddTrigger(
            model_name="archivedpayment",
            trigger=Trigger(
                name="append_only",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="747d6bc025ddef5ed3368f1c154f8a3518f4de90",
                    operation="UPDATE",
                    pgid="pgtrigger_append_only_c0486",
                    table="gateway_archivedpayment",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="archivedpayment",
            trigger=Trigger(
                name="only_moved",
                sql=GuardSql(
                    func="IF EXISTS (SELECT 1 FROM gateway_payment WHERE id = OLD.id) THEN RETURN OLD; END IF; RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="b5e326b0765160f633a267a2c740f939eab81c28",
                    operation="DELETE",
                    pgid="pgtrigger_only_moved_ff697",
                    table="gateway_archivedpayment",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="archivedpayment",
            trigger=Trigger(
                name="never_emptied",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="91334c4f35774a68c9e4940f57430190b05ef6ec",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_c107f",
                    table="gateway_archivedpayment",
                    when="BEFORE",
                ),
            ),
        ),
    ]
