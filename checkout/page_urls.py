"""The hosted payment page's routes, below /pay/."""

from __future__ import annotations

from django.urls import path

from checkout import payment_page

urlpatterns = [
    path("<str:target>", payment_page.payment_page_view),
    path("<str:target>/receipt", payment_page.receipt_mail_view),
]
