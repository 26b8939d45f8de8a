"""A key of another account at the processor, while payments are in doubt there. Review of; docs/routing.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.configuration.section import ConfigurationTarget
from gateway.connectors import account_ownership
from gateway.connectors.accounts import open_connector_secrets
from gateway.core import document as d
from gateway.models import AcquirerAccount, OpenPayment, Psp, Role
from tests.support.card_api import KEY, OTHERS, ROTATED, CardApi
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
NO_KEY = "sk_test_NobodysKey0123456789"
PAGE = "/admin/gateway/acquireraccount/{}/change/"


@pytest.fixture
def doubtful(card_shop: Shop, processor: CardApi) -> Shop:
    """One payment has its answer, one is in doubt; nobody has asked about keys yet."""
    account_ownership._results.clear()
    assert card_shop.api.pay(testMode="EXTERNAL").code == "000.100.112"
    processor.fault("silent_before")
    assert card_shop.api.pay(testMode="EXTERNAL").code == "000.200.001"
    return card_shop


@pytest.fixture
def staff(doubtful: Shop) -> Client:
    return signed_in(person("staff", Role.PSP, Psp.objects.get()))


def save(staff: Client, key: str) -> str:
    """Type a new key into the account's page. The page that comes of it; '' when it was saved."""
    row = AcquirerAccount.objects.get()
    settings = {f"setting_{name}": value for name, value in row.settings.items()}
    answer = staff.post(
        PAGE.format(row.pk),
        {
            "name": "Cards",
            "brands": "",
            "currencies": "",
            "active": "on",
            "secret_api_key": key,
            "secret_webhook_secrets": "",
            "setting_profile": "full",
            "setting_multicapture": "off",
            "setting_api_version": "2025-02-24.acacia",
            **settings,
        },
    )
    return answer.content.decode() if answer.status_code == 200 else ""


def kept_key() -> str:
    return open_connector_secrets(AcquirerAccount.objects.get())["api_key"].reveal()


def test_a_key_of_another_account_there_is_refused_while_a_payment_is_in_doubt(staff: Client) -> None:
    """The other account knows nothing of the payment, and recovery would believe it."""
    page = save(staff, OTHERS)
    assert "is of another account at the processor: 1 payments of this account have no answer yet" in page
    assert "Another account there is another here." in page
    assert OTHERS not in page
    assert kept_key() == KEY
    OpenPayment.objects.all().delete()
    assert save(staff, OTHERS) == ""
    assert kept_key() == OTHERS


def test_a_key_of_the_same_account_replaces_the_old_one_at_any_time(staff: Client) -> None:
    assert save(staff, ROTATED) == ""
    assert kept_key() == ROTATED


def test_what_the_processor_cannot_tell_is_not_saved_and_says_so(staff: Client, processor: CardApi) -> None:
    """A key that is none, or nobody there: it is not believed to be the same account's."""
    assert "may be of another account, the processor could not tell" in save(staff, NO_KEY)
    processor.vanish()
    assert "may be of another account, the processor could not tell" in save(staff, ROTATED)
    assert kept_key() == KEY


def test_a_document_is_told_the_same(doubtful: Shop, tmp_path: Path) -> None:
    found = find_configuration_target(doubtful.channel.id)
    assert found is not None
    target = ConfigurationTarget(merchant=found.merchant, channel=found.channel, folder=tmp_path)
    (tmp_path / "others").write_text(OTHERS)
    (tmp_path / "rotated").write_text(ROTATED + "\n")
    account = {"connector": "stripe", "merchant": "acct_1"}

    def apply(file: str) -> list[str]:
        document = {"acquirers": {"accounts": [account | {"secretFiles": {"api_key": file}}]}}
        return [change.section for change in apply_configuration(target, document, by=audit_log.COMMAND_LINE_ACTOR)]

    with pytest.raises(d.InvalidDocumentError) as raised:
        apply("others")
    [fault] = raised.value.faults
    assert fault.path == "acquirers.accounts[0].secretFiles.api_key"
    assert "is of another account at the processor" in fault.message
    assert apply("rotated") == ["acquirers"]
    assert kept_key() == ROTATED
