"""The routes of checkouts, payment links and of the widget, below /v1/."""

from __future__ import annotations

from django.urls import path

from checkout import api, csp_reports, payment_link_api, wallet_api, widget_files

urlpatterns = [
    path("checkouts", api.CreateCheckoutView.as_view()),
    path("checkouts/<str:target>", api.UpdateCheckoutView.as_view()),
    path("checkouts/<str:target>/payment", api.CheckoutPaymentView.as_view()),
    path("checkouts/<str:target>/registration", api.CheckoutRegistrationView.as_view()),
    path("checkouts/<str:target>/config", api.CheckoutConfigView.as_view()),
    path("checkouts/<str:target>/card-brands", api.CardBrandsView.as_view()),
    path("checkouts/<str:target>/state", api.CheckoutStateView.as_view()),
    path("checkouts/<str:target>/release", api.ReleasePartsView.as_view()),
    path("checkouts/<str:target>/wallet-session", wallet_api.WalletSessionView.as_view()),
    path("paymentLinks", payment_link_api.PaymentLinksView.as_view()),
    path("paymentLinks/<str:target>", payment_link_api.PaymentLinkView.as_view()),
    path("paymentLinks/<str:target>/deactivate", payment_link_api.DeactivatePaymentLinkView.as_view()),
    path("paymentWidgets.js", widget_files.widget_script_view),
    path("paymentWidgets/<str:digest>.js", widget_files.widget_build_view),
    path("fastcheckout/integrity", widget_files.integrity_view),
    path("widget/texts/<str:locale>.json", widget_files.widget_texts_view),
    path("widget/brands.json", widget_files.brand_table_view),
    path("widget/frame.html", widget_files.hosted_field_view),
    path("widget/policy-reports", csp_reports.receive_csp_report),
]
