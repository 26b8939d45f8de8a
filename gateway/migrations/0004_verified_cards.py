"""An approved authorization of 0.00 holds nothing: it gets no row of ChainState, and is shown as verified."""

from typing import ClassVar

from django.db import migrations

_TRIGGERS = """
DROP TRIGGER chain_moved_by_insert ON gateway_payment;
DROP TRIGGER chain_moved_by_update ON gateway_payment;
CREATE TRIGGER chain_moved_by_insert AFTER INSERT ON gateway_payment
    FOR EACH ROW WHEN ({moves}) EXECUTE FUNCTION gateway_follow_chain();
CREATE TRIGGER chain_moved_by_update AFTER UPDATE OF status ON gateway_payment
    FOR EACH ROW WHEN (OLD.status <> 'APPROVED' AND {moves}) EXECUTE FUNCTION gateway_follow_chain();
"""
_MOVES = """
    NEW.status = 'APPROVED' AND (
        (NEW.payment_type = 'PA' AND {holds})
        OR (NEW.chain <> NEW.id AND NEW.payment_type IN ('CP', 'RF', 'RV', 'RB', 'RC', 'CB', 'CR'))
    )
"""
_OF_AN_AMOUNT = _TRIGGERS.format(moves=_MOVES.format(holds="NEW.amount > 0"))
_OF_ANY = _TRIGGERS.format(moves=_MOVES.format(holds="true"))


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "0003_plain_names")]

    operations: ClassVar = [migrations.RunSQL(_OF_AN_AMOUNT, _OF_ANY)]
