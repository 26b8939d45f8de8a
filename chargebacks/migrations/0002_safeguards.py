"""The guards of the models' Meta (gateway.db.guards): what happened to a case is append-only."""

from typing import ClassVar

from django.db import migrations
from pgtrigger.compiler import Trigger
from pgtrigger.migrations import AddTrigger

from gateway.db.guards import GuardSql

# A statement may write the chargeback and its case: whichever trigger is first makes the row. The lock comes before the
# look: of two cases of one chain that move at once, the second looks when the first has moved.
_FOLLOW_CASE = """
CREATE FUNCTION chargebacks_follow_case() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO gateway_chainstate (chain_id, merchant_id, created_at, state)
    SELECT id, merchant_id, created_at, '' FROM gateway_payment WHERE id = NEW.chain
    ON CONFLICT (chain_id) DO NOTHING;
    PERFORM 1 FROM gateway_chainstate WHERE chain_id = NEW.chain FOR UPDATE;
    UPDATE gateway_chainstate SET disputed = EXISTS (
        SELECT 1 FROM chargebacks_chargeback WHERE chain = NEW.chain AND state IN ('OPEN', 'SUBMITTED')
    ) WHERE chain_id = NEW.chain;
    RETURN NULL;
END $$;
CREATE TRIGGER chain_disputed AFTER INSERT OR UPDATE OF state ON chargebacks_chargeback
    FOR EACH ROW EXECUTE FUNCTION chargebacks_follow_case();
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("chargebacks", "0001_initial"), ("gateway", "0002_safeguards")]

    operations: ClassVar = [
        AddTrigger(
            model_name="caseevent",
            trigger=Trigger(
                name="append_only",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="af40b0f30f4f8a2415247d58de5654c630f15001",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_8f787",
                    table="chargebacks_caseevent",
                    when="BEFORE",
                ),
            ),
        ),
        AddTrigger(
            model_name="caseevent",
            trigger=Trigger(
                name="never_emptied",
                sql=GuardSql(
                    func="RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';",
                    hash="37782a2fa12d53f39e7eabd7d4df5e2ca2928922",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_f0cd8",
                    table="chargebacks_caseevent",
                    when="BEFORE",
                ),
            ),
        ),
        # A chain is disputed while one of its cases is open (docs/decisions/0076).
        migrations.RunSQL(_FOLLOW_CASE, "DROP FUNCTION chargebacks_follow_case() CASCADE"),
    ]
