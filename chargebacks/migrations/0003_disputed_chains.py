"""A chain is disputed while one of its cases is open: the cases' own trigger says so to the chain's state
(gateway migration 0003, docs/decisions/0076)."""

from typing import ClassVar

from django.db import migrations

# A statement may write the chargeback and its case: whichever trigger is first makes the row. The lock comes before the
# look: of two cases of one chain that move at once, the second looks when the first has moved.
_FOLLOW = """
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
    dependencies: ClassVar = [("chargebacks", "0002_safeguards"), ("gateway", "0003_chain_states")]
    operations: ClassVar = [migrations.RunSQL(_FOLLOW, "DROP FUNCTION chargebacks_follow_case() CASCADE")]
