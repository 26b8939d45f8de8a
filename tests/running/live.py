"""The live environment: unsafe settings are refused, safe ones start, and tokens travel over TLS only."""

from __future__ import annotations

import json
import string
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.running.servers import Cluster
from tests.running.site import Site
from tests.running.trials import Row

DATABASE: Final = "tollhouse_live"
MERCHANT: Final = """
from gateway.models import Channel, Division, Merchant, Psp
division = Division.objects.create(name="Division", psp=Psp.objects.create(name="PSP"))
merchant = Merchant.objects.create(name="Shop", division=division)
print(Channel.objects.create(name="Main", merchant=merchant).entity_id)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsafe:
    """Settings that a start must refuse, and the check that refuses them."""

    check: str
    settings: Mapping[str, str]


OIDC_CLIENT: Final = {"GATEWAY_OIDC_CLIENT_ID": "tollhouse", "GATEWAY_OIDC_CLIENT_SECRET": "of the provider"}
UNSAFE: Final = (
    Unsafe(check="E001", settings={"GATEWAY_ENVIRONMENT": "production"}),
    Unsafe(check="E003", settings={"GATEWAY_TOTP": "never"}),
    Unsafe(check="E010", settings={"DJANGO_DEBUG": "true"}),
    Unsafe(check="E011", settings={"GATEWAY_BASE_URL": "http://localhost"}),
    Unsafe(check="E012", settings={"DJANGO_SECRET_KEY": "short"}),
    Unsafe(check="E012", settings={"DJANGO_SECRET_KEY": "a" * 64}),
    Unsafe(check="E012", settings={"DJANGO_SECRET_KEY": "0123456789abc" * 4}),
    Unsafe(check="E012", settings={"DJANGO_SECRET_KEY": f"django-insecure-{string.ascii_letters}"}),
    Unsafe(check="E013", settings={"DJANGO_ALLOWED_HOSTS": "*"}),
    Unsafe(check="E014", settings={"GATEWAY_VAULT_KEYSET_FILE": "{folder}/nowhere.json"}),
    Unsafe(check="E015", settings={"GATEWAY_VAULT_KEYSET_FILE": "{folder}/open.json"}),
    Unsafe(check="E016", settings={"GATEWAY_OUTBOUND_LOOPBACK": "true"}),
    Unsafe(check="E017", settings={"GATEWAY_OUTBOUND_PORTS": "443,any"}),
    Unsafe(check="E021", settings={"GATEWAY_STUB_ACQUIRER": "127.0.0.1:7000"}),
    Unsafe(check="E022", settings={"GATEWAY_TOTP": "optional"}),
    Unsafe(check="E023", settings={"GATEWAY_SESSION_IDLE_MINUTES": "60"}),
    Unsafe(check="E023", settings={"GATEWAY_SESSION_IDLE_MINUTES": "0"}),
    Unsafe(check="E024", settings={"GATEWAY_SESSION_HOURS": "25"}),
    Unsafe(check="E025", settings={"GATEWAY_OIDC_ISSUER": "http://id.example", **OIDC_CLIENT}),
    Unsafe(check="E026", settings={"GATEWAY_OIDC_ISSUER": "https://id.example"}),
    Unsafe(check="E027", settings={"GATEWAY_UNUSED_ACCOUNT_DAYS": "0"}),
    Unsafe(check="E030", settings={"GATEWAY_PASSWORD_CHECKS_PER_MINUTE": "0"}),
)


def a_live_start(folder: Path, cluster: Cluster, proxy: str) -> Iterator[Row]:
    primary = next(server for server in cluster.servers if server.answers() and not _is_standby(server.ask))
    primary.ask(f"CREATE DATABASE {DATABASE} OWNER tollhouse")
    site = Site("live", folder, cluster.url(DATABASE), live=True, proxy=proxy)
    try:
        site.manage("vault_key", "--create")
        yield _unsafe_is_refused(site)
        site.manage("check")
        site.migrate()
        site.start_web()
        entity = site.manage("shell", "--no-imports", "-c", MERCHANT).stdout.strip()
        token = json.loads(site.manage("access_token", "--entity", entity).stdout)["access_token"]
        yield _over_tls(site, token, entity)
        yield _in_clear(site, token, entity)
    finally:
        site.stop()


def _unsafe_is_refused(site: Site) -> Row:
    (site.folder / "open.json").write_bytes((site.folder / "vault.json").read_bytes())
    (site.folder / "open.json").chmod(0o644)
    passed = []
    for row in UNSAFE:
        settings: dict[str, Any] = {name: value.format(folder=site.folder) for name, value in row.settings.items()}
        done = site.manage("check", check=False, **settings)
        if done.returncode == 0 or f"tollhouse.{row.check}" not in done.stderr:
            passed.append(row.check)
    checks = ", ".join(dict.fromkeys(row.check for row in UNSAFE))
    return Row(
        trial="live: unsafe settings",
        done=f"manage.py check with {len(UNSAFE)} unsafe settings, one at a time: {checks}",
        seen=f"{len(UNSAFE) - len(passed)} refused, {', '.join(passed) or 'none'} let through; safe settings accepted",
        fine=not passed,
    )


def _over_tls(site: Site, token: str, entity: str) -> Row:
    speaker = site.speaker(token, entity)
    answer = speaker.pay(uuid.uuid4().hex, X_none="")
    hsts = {name.lower(): value for name, value in answer.headers.items()}.get("strict-transport-security", "none")
    outside = speaker.status("/metrics")
    bearer = site.in_clear(site.ports[0], site.environment["GATEWAY_METRICS_TOKEN"])
    inside = bearer.ask("GET", "/metrics", X_Forwarded_Proto="https").status
    forged = speaker.ask("GET", f"/v1/payments/{'0' * 32}?entityId={entity}", X_Forwarded_Proto="http").status
    return Row(
        trial="live: through the proxy",
        done="a payment over TLS; /metrics from outside, and on the node with its token; a forged X-Forwarded-Proto",
        seen=f"payment {answer.status} {answer.code} (no acquirer is set up); HSTS {hsts}; /metrics {outside} outside, "
        f"{inside} inside; forged header made no difference: {'yes' if forged == 404 else f'no ({forged})'}",
        fine=answer.code == "600.200.700"
        and hsts.startswith("max-age=")
        and outside == 404
        and inside == 200
        and forged == 404,
    )


def _in_clear(site: Site, token: str, entity: str) -> Row:
    through = site.in_clear(site.plain, token, entity)
    refused = through.pay(uuid.uuid4().hex)
    forged = through.ask("GET", f"/v1/payments/{'0' * 32}?entityId={entity}", X_Forwarded_Proto="https").status
    sent_on = site.in_clear(site.plain).ask("GET", "/v1/resultcodes")
    location = {name.lower(): value for name, value in sent_on.headers.items()}.get("location", "")
    return Row(
        trial="live: plain HTTP",
        done="a payment with its token, the same with a forged X-Forwarded-Proto: https, and a request without a token",
        seen=f"{refused.status} {refused.code}, {forged}, {sent_on.status} to {location.split(':')[0] or 'nowhere'}",
        fine=refused.status == 403 and forged == 403 and sent_on.status == 307 and location.startswith("https://"),
    )


def _is_standby(ask: object) -> bool:
    assert callable(ask)
    return bool(ask("SELECT pg_is_in_recovery()")[0][0])
