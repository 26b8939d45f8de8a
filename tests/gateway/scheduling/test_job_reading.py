"""What a run of a job reads: its own rows, whole, and none of another job, merchant or card.

Source: docs/decisions/0112.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import models

from gateway.models import Agreement, Channel, Merchant, Registration
from gateway.scheduling.job_reading import read_job, read_job_means
from gateway.scheduling.models import Job
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.subscriptions import started, store_card

pytestmark = pytest.mark.django_db


def columns(row: models.Model) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.fixture
def job(shop: Shop, stranger: Shop) -> Job:
    """A job with its own agreement, beside another one of its merchant and one of another merchant."""
    for api in (stranger.api, shop.api):
        started(api, store_card(api, "5454545454545454", paymentBrand="MASTER"), amount="7.70")
    ident = started(shop.api, store_card(shop.api), amount="9.90").id
    return Job.objects.get(pk=ident)


def test_a_job_is_read_with_its_channel_its_merchant_and_what_is_above_it(shop: Shop, job: Job) -> None:
    with statements() as asked:
        found = read_job(job.pk)
        above = (found.channel.merchant, found.merchant.division, found.merchant.division.psp)
        assert found.merchant.works
    assert len(asked) == 1
    assert columns(found) == columns(job)
    assert columns(found.channel) == columns(Channel.objects.get(pk=shop.channel.pk))
    assert columns(found.merchant) == columns(Merchant.objects.get(pk=shop.merchant.pk))
    assert above[0] is found.merchant
    assert columns(above[1]) == columns(shop.merchant.division)
    assert columns(above[2]) == columns(shop.merchant.division.psp)


def test_a_job_is_charged_by_its_registration_at_the_registrations_channel_under_its_agreement(
    shop: Shop, job: Job
) -> None:
    other = shop.open_channel("where the card is stored")
    Registration.objects.filter(pk=job.registration).update(channel=other)
    found = read_job(job.pk)
    with statements() as asked:
        registration, agreement = read_job_means(found)
        assert registration.channel.merchant is registration.merchant is found.merchant
    assert len(asked) == 1
    assert columns(registration) == columns(Registration.objects.get(pk=job.registration))
    assert columns(registration.channel) == columns(Channel.objects.get(pk=other.pk))
    assert job.agreement is not None
    assert agreement is not None
    assert columns(agreement) == columns(Agreement.objects.get(pk=job.agreement))


def test_a_job_without_an_agreement_is_charged_without_one(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(agreement=None)
    registration, agreement = read_job_means(read_job(job.pk))
    assert (registration.pk, agreement) == (job.registration, None)


def test_a_job_or_a_card_that_is_not_there_is_told(job: Job) -> None:
    with pytest.raises(Job.DoesNotExist):
        read_job(UUID(int=7))
    found = read_job(job.pk)
    found.registration = UUID(int=7)
    with pytest.raises(Registration.DoesNotExist):
        read_job_means(found)
