"""A provider for django-payments: shoppers pay on the hosted payment page of a Tollhouse gateway."""

from tollhouse_django_payments.chain import ChainState, Collected, sum_up_chain
from tollhouse_django_payments.provider import TollhouseProvider

__all__ = ["ChainState", "Collected", "TollhouseProvider", "sum_up_chain"]
