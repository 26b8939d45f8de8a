"""Forms of the webhook pages: an endpoint, and a body to verify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.access import permissions
from gateway.backoffice.kit.entity_names import MAX_TYPED_NAME_CHARS
from gateway.core.secret import Secret
from gateway.models import Channel, Merchant, WebhookEndpoint
from gateway.models.webhooks import WEBHOOK_KINDS
from gateway.notifications import endpoints, message_verification, signing
from gateway.notifications.endpoints import InvalidEndpointError
from gateway.notifications.message_verification import VerificationResult, VerificationVerdict

MAX_OWNER_CHOICES: Final = 200
"""Merchants, and as many channels, that a form offers; those of further merchants by a part of the name."""
MAX_SHOWN_ENDPOINTS: Final = 200
"""Endpoints that a list or a form shows; those of further merchants by a part of the name."""
OWNER_NAME_PARAMETER: Final = "merchant"
"""The query parameter with a part of the merchant's name."""
MAX_WEBHOOK_SECRET_CHARS: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOwner:
    """The owner of an endpoint; ``channel`` None: all channels of the merchant."""

    merchant: Merchant
    channel: Channel | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedOwners:
    """What a form offers: (key, name, owner). ``name``: the part of a merchant's name that it was narrowed by; ``cut``:
    there are more."""

    rows: list[tuple[str, str, EndpointOwner]]
    name: str
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEndpoints:
    """Endpoints of merchants of a ``name``, those of the newest first of each; ``cut``: there are more."""

    rows: list[WebhookEndpoint]
    name: str
    cut: bool


def find_endpoints(request: HttpRequest, permitted: QuerySet[WebhookEndpoint]) -> FoundEndpoints:
    """The ``permitted`` endpoints; only of the merchant that the address names, if it names one."""
    name = parse_owner_name(request)
    found = permitted.filter(merchant__name__icontains=name) if name else permitted
    ordered = found.select_related("merchant", "channel").order_by("merchant__name", "-id")
    rows = list(ordered[: MAX_SHOWN_ENDPOINTS + 1])
    return FoundEndpoints(rows=rows[:MAX_SHOWN_ENDPOINTS], name=name, cut=len(rows) > MAX_SHOWN_ENDPOINTS)


def parse_owner_name(request: HttpRequest) -> str:
    """The part of a merchant's name in the address; empty without one."""
    return request.GET.get(OWNER_NAME_PARAMETER, "").replace("\0", "").strip()[:MAX_TYPED_NAME_CHARS]


def list_endpoint_owners(request: HttpRequest, right: str) -> OfferedOwners:
    """Merchants and channels on which the user has the permission ``right``, of merchants of the name in the address if
    there is one."""
    name = parse_owner_name(request)
    permitted = permissions.list_permitted_merchants(request.user, right)
    merchants = list(permitted.filter(name__icontains=name).order_by("name")[: MAX_OWNER_CHOICES + 1])
    within = permissions.list_permitted_channels(request.user, right).filter(merchant__name__icontains=name)
    ordered = within.select_related("merchant").order_by("merchant__name", "position")
    channels = list(ordered[: MAX_OWNER_CHOICES + 1])
    found = [
        (row.pk.hex, _("%s, all channels") % row.name, EndpointOwner(merchant=row, channel=None))
        for row in merchants[:MAX_OWNER_CHOICES]
    ]
    found += [
        (row.pk.hex, f"{row.merchant.name}: {row.name}", EndpointOwner(merchant=row.merchant, channel=row))
        for row in channels[:MAX_OWNER_CHOICES]
    ]
    return OfferedOwners(rows=found, name=name, cut=max(len(merchants), len(channels)) > MAX_OWNER_CHOICES)


class EndpointForm(forms.Form):
    """URL, kinds, mode and wrapper of an endpoint; owner and secret when it is created. Errors are shown beside their
    field."""

    place = forms.ChoiceField(label=gettext_lazy("Whose events"))
    url = forms.CharField(
        label=gettext_lazy("Address (URL)"),
        max_length=2048,
        widget=forms.TextInput(attrs={"inputmode": "url"}),
        help_text=gettext_lazy(
            "Where your server listens, such as https://shop.example/webhooks. Redirects are not followed."
        ),
    )
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=[(kind, kind) for kind in WEBHOOK_KINDS],
        widget=forms.CheckboxSelectMultiple,
    )
    mode = forms.ChoiceField(
        label=gettext_lazy("How it is protected"),
        choices=[
            ("signed", gettext_lazy("signed: readable JSON with a signature (Standard Webhooks)")),
            ("encrypted", gettext_lazy("encrypted: AES-256-GCM")),
        ],
    )
    wrapper = forms.ChoiceField(
        label=gettext_lazy("Form of an encrypted body"),
        choices=[("none", gettext_lazy("hex text")), ("json", '{"encryptedBody": "…"}')],
        help_text=gettext_lazy("Signed webhooks have no wrapper."),
    )
    secret = forms.CharField(
        label=gettext_lazy("Secret (optional)"),
        required=False,
        max_length=MAX_WEBHOOK_SECRET_CHARS,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy(
            "Leave it empty and a good one is made. Your own: 64 hex digits, or whsec_ and 32 bytes in base64."
        ),
    )

    def __init__(self, *args: Any, offered: list[tuple[str, str, EndpointOwner]] | None = None, **kwargs: Any) -> None:
        """``offered`` None: an existing endpoint. Its owner cannot change, and its secret is rotated on another
        page."""
        super().__init__(*args, **kwargs)
        self._places = {key: whose for key, _name, whose in offered or ()}
        if offered is None:
            del self.fields["place"], self.fields["secret"]
        else:
            chosen = self.fields["place"]
            assert isinstance(chosen, forms.ChoiceField)
            chosen.choices = [(key, name) for key, name, _whose in offered]

    @property
    def owner(self) -> EndpointOwner:
        return self._places[self.cleaned_data["place"]]

    def clean_secret(self) -> Secret | None:
        text = self.cleaned_data["secret"]
        if not text:
            return None
        try:
            return signing.parse_webhook_secret(text)
        except ValueError as fault:
            raise forms.ValidationError(_format_sentence(str(fault))) from None

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if {"url", "mode", "wrapper", "kinds"} <= found.keys():
            if found["mode"] == WebhookEndpoint.Mode.SIGNED:
                found["wrapper"] = str(WebhookEndpoint.Wrapper.NONE)
            try:
                endpoints.validate_endpoint(
                    found["url"], mode=found["mode"], wrapper=found["wrapper"], kinds=found["kinds"]
                )
            except InvalidEndpointError as fault:
                self.add_error("url", _format_sentence(str(fault)))
        return found


def _format_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


class VerifyWebhookForm(forms.Form):
    """A pasted webhook: endpoint, headers and body."""

    endpoint = forms.ChoiceField(label=gettext_lazy("Sent to"))
    headers = forms.CharField(
        label=gettext_lazy("Headers"),
        max_length=message_verification.MAX_PASTED_CHARS,
        widget=forms.Textarea(attrs={"rows": 5}),
        strip=False,
        help_text=gettext_lazy("One a line, as your server received them. Others than ours do no harm."),
    )
    body = forms.CharField(
        label=gettext_lazy("Body"),
        max_length=message_verification.MAX_PASTED_CHARS,
        widget=forms.Textarea(attrs={"rows": 8}),
        strip=False,
        help_text=gettext_lazy("Exactly as it came, before any library read it."),
    )

    def __init__(self, *args: Any, offered: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen = self.fields["endpoint"]
        assert isinstance(chosen, forms.ChoiceField)
        chosen.choices = offered


VERIFICATION_TITLES: Final[Mapping[VerificationResult, tuple[str, str | Promise]]] = {
    VerificationResult.RIGHT: ("good", gettext_lazy("Right")),
    VerificationResult.OLD: ("wait", gettext_lazy("Right, but the timestamp is too far off")),
    VerificationResult.WRONG_KEY: ("bad", gettext_lazy("Wrong key")),
    VerificationResult.WRONG_ENCODING: ("bad", gettext_lazy("Wrong encoding")),
    VerificationResult.MISSING: ("bad", gettext_lazy("A header is missing")),
}
"""Result of a verification → colour and heading."""
_REASONS: Final[Mapping[str, str | Promise]] = {
    "right": gettext_lazy("It is exactly what was sent, and the secret of this endpoint fits."),
    "old": gettext_lazy("The signature fits, but it was made %s minutes ago. Libraries refuse what is older than five "
                        "minutes: compare the clock of your server, or send the webhook once more."),
    "early": gettext_lazy("The signature fits, but its time lies %s minutes ahead. Your server's clock is behind."),
    "no signature fits": gettext_lazy("No signature was made with a secret of this endpoint over this body. Either "
                                      "your secret is another endpoint's or an old one, or the body, webhook-id or "
                                      "webhook-timestamp was changed on the way."),
    "does not open": gettext_lazy("The secret of this endpoint does not open it. Either it was sealed for another "
                                  "endpoint or with a secret that is no longer honoured, or the body or a header was "
                                  "changed or cut on the way."),
    "no headers": gettext_lazy("There is neither webhook-signature nor X-Initialization-Vector among the headers. "
                               "Proxies and frameworks drop unknown headers at times."),
    "header": gettext_lazy("%s is not among the headers, or it is empty."),
    "timestamp": gettext_lazy("%s is no number of seconds: it was reformatted on the way."),
    "signature": gettext_lazy("%s holds no signature: it is v1, a comma and 32 bytes in base64, such as v1,K5oZ…"),
    "white space": gettext_lazy("It fits once the white space around the body is removed. If that came by copying, all "
                                "is well; if your server sees it, too, it does not read the raw body."),
    "written again": gettext_lazy("It fits once the JSON is written compactly again: the body was parsed and printed "
                                  "before it was verified. Verify the raw bytes first, parse afterwards."),
    "quoted": gettext_lazy("It fits once the quotation marks around the body are removed: it was encoded as a JSON "
                           "string once more. Verify the raw bytes."),
    "hex header": gettext_lazy("This header has to be that many hex digits: %s."),
    "no encryptedBody": gettext_lazy("The body begins like JSON, but has no encryptedBody."),
    "body is no hex": gettext_lazy("The body is not hex: digits 0-9 and a-f, two for each byte. It was decoded "
                                   "already, cut, or it is another text."),
    "body in base64": gettext_lazy("It opens, but the body is in base64. It is sent in hex: something on the way, or "
                                   "your copy, has written it anew."),
    "tag inside": gettext_lazy("It opens, but the tag stands at the end of the body already. It is sent in the header "
                               "X-Authentication-Tag alone."),
}  # fmt: skip


def explain_verification(verdict: VerificationVerdict) -> str:
    """Why a verification failed or passed, with a hint."""
    text = str(_REASONS[verdict.why])
    return text % verdict.more if "%s" in text else text
