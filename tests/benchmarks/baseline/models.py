"""One table with a column for each field that the benchmark's request sends, and no index but its key."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models


class Payment(models.Model):
    """The request as one row. The data is made up, so the card lies here in clear, which costs least."""

    entity_id = models.CharField(max_length=32, validators=[RegexValidator(r"\A[0-9a-f]{32}\Z")])
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    currency = models.CharField(max_length=3, validators=[RegexValidator(r"\A[A-Z]{3}\Z")])
    payment_brand = models.CharField(max_length=32)
    payment_type = models.CharField(max_length=2, choices=[("DB", "Debit"), ("PA", "Preauthorization")])
    merchant_transaction_id = models.CharField(max_length=255)
    card_number = models.CharField(max_length=19, validators=[RegexValidator(r"\A[0-9]{12,19}\Z")])
    card_holder = models.CharField(max_length=128)
    card_expiry_month = models.CharField(max_length=2, validators=[RegexValidator(r"\A(0[1-9]|1[0-2])\Z")])
    card_expiry_year = models.CharField(max_length=4, validators=[RegexValidator(r"\A20[0-9]{2}\Z")])
    card_cvv = models.CharField(max_length=4, validators=[RegexValidator(r"\A[0-9]{3,4}\Z")])
    customer_given_name = models.CharField(max_length=48)
    customer_surname = models.CharField(max_length=48)
    customer_email = models.EmailField(max_length=128)
    billing_street1 = models.CharField(max_length=100)
    billing_city = models.CharField(max_length=80)
    billing_postcode = models.CharField(max_length=16)
    billing_country = models.CharField(max_length=2, validators=[RegexValidator(r"\A[A-Z]{2}\Z")])

    class Meta:
        app_label: ClassVar[str] = "baseline"
