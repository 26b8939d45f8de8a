"""The embedded broker: a queue survives a kill, and it never evicts. Source: the ground."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from config.launcher.broker import Broker
from config.launcher.errors import LaunchError


@pytest.fixture
def broker(var: Path) -> Iterator[Broker]:
    started = Broker(var)
    yield started
    started.stop()


def test_what_was_queued_is_there_after_kill_9(broker: Broker) -> None:
    """The append-only file is read at the next start."""
    url = broker.start()
    with redis.Redis.from_url(url) as client:
        client.rpush("queue", "wake")
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
    assert broker.start() == url
    with redis.Redis.from_url(url) as client:
        assert client.lrange("queue", 0, -1) == [b"wake"]


def test_it_asks_for_a_password_listens_on_the_loopback_and_never_evicts(broker: Broker) -> None:
    """A full broker refuses instead of forgetting."""
    url = broker.start()
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    never = Retry(NoBackoff(), 0)
    with redis.Redis(port=port, retry=never) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    with redis.Redis.from_url(url) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("bind") == {"bind": "127.0.0.1"}


def test_its_password_is_not_on_its_command_line(broker: Broker) -> None:
    """Every user of a machine may read command lines."""
    url = broker.start()
    password = url.split(":", 2)[2].split("@")[0]
    assert password not in Path(f"/proc/{broker.pid}/cmdline").read_text()


def test_a_broker_url_that_does_not_answer_says_so_in_one_line(var: Path) -> None:
    """CELERY_BROKER_URL is honoured, and looked at."""
    with pytest.raises(LaunchError) as fault:
        Broker(var, url="redis://:topsecret@127.0.0.1:1/0").start()
    assert "Connection refused" in str(fault.value)
    assert "\n" not in str(fault.value)
    assert "topsecret" not in str(fault.value)
