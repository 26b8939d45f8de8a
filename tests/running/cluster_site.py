"""The gateway on two machines before a Patroni cluster: each has a web node, worker, beat and database proxy."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from config.launcher.programs import WebServer, build_beat_command, build_worker_command
from tests.running.files import rendered
from tests.running.machines import OWN_ADDRESS, Machine
from tests.running.patroni import PatroniCluster
from tests.running.site import Process, Site, found_proxy, program

ACQUIRER_PORT: Final = 7000
BROKER_PORT: Final = 6379
AWAY: Final = f"""
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
listen acquirer
    bind {OWN_ADDRESS}:{ACQUIRER_PORT}
    server acquirer 127.0.0.1:{{acquirer}}
listen broker
    bind {OWN_ADDRESS}:{BROKER_PORT}
    server broker 127.0.0.1:{{broker}}
"""
"""Stub acquirer and Valkey listen on the loopback alone; so both are reached from other machines."""


class Application:
    """app1 or app2: a machine and the four processes on it."""

    def __init__(self, number: int, site: ClusterSite) -> None:
        self.name = f"app{number + 1}"
        self.address = f"10.0.0.1{number + 1}"
        self.folder = site.folder / self.name
        self.folder.mkdir()
        self.machine = Machine(self.name, self.address, self.folder / "machine.log")
        configuration = self.folder / "haproxy-database.cfg"
        configuration.write_text(rendered("haproxy-database.cfg", {}))
        web = WebServer(host=self.address, port=8000, workers=1, threads=12, timeout_s=60)
        commands = {
            "database proxy": [found_proxy("haproxy"), "-db", "-f", str(configuration)],
            "web node": program(web.command()),
            "worker": program(build_worker_command()),
            "beat": program(build_beat_command()),
        }
        self.processes = {
            name: Process(name.replace(" ", "-"), self.machine.on(*command), self.folder, site.environment)
            for name, command in commands.items()
        }

    def start(self) -> None:
        for process in self.processes.values():
            process.start()

    def lose_power(self) -> None:
        self.machine.pull_link()
        self.machine.kill()
        for process in self.processes.values():
            process.kill()

    def get_power(self) -> None:
        self.machine.plug_in()
        self.start()


class ClusterSite(Site):
    """The proxy of docs/running before both; stub acquirer and broker are on the clients' own machine."""

    def __init__(self, folder: Path, cluster: PatroniCluster) -> None:
        super().__init__("site", folder, cluster.url(), live=False, proxy="haproxy")
        self._local_acquirer = self.environment["GATEWAY_STUB_ACQUIRER"]
        self.environment["GATEWAY_STUB_ACQUIRER"] = f"{OWN_ADDRESS}:{ACQUIRER_PORT}"
        # The trial asks each node by its address.
        self.environment["DJANGO_ALLOWED_HOSTS"] = "localhost,10.0.0.11,10.0.0.12"
        self.environment["GATEWAY_STANDBY_URL"] = cluster.url(5001, "target_session_attrs=standby")
        self.applications = [Application(number, self) for number in (0, 1)]

    def start_away(self) -> None:
        """Broker and acquirer, and what makes them reachable; then the database proxies, which all else needs."""
        address = urlsplit(self.broker.start())
        self.environment["CELERY_BROKER_URL"] = f"redis://:{address.password}@{OWN_ADDRESS}:{BROKER_PORT}/0"
        configuration = self.folder / "away.cfg"
        configuration.write_text(AWAY.format(acquirer=self._local_acquirer.rpartition(":")[2], broker=address.port))
        self._up(self.acquirer)
        self._up(Process("away", [found_proxy("haproxy"), "-db", "-f", str(configuration)], self.folder, {}))
        for application in self.applications:
            self._up(application.processes["database proxy"])

    def start_web(self) -> None:
        """The proxy and both nodes; then workers and beats, which would only be in their way."""
        self._up(self.proxy)
        for application in self.applications:
            self._up(application.processes["web node"])
        for application in self.applications:
            self.wait_ready(application)
        self._wait(lambda: self.speaker().status("/health/ready") == 200, "proxy")
        for application in self.applications:
            for name in ("worker", "beat"):
                self._up(application.processes[name])

    def wait_ready(self, application: Application) -> None:
        node = self.in_clear(8000, host=application.address)
        self._wait(lambda: node.status("/health/ready") == 200, application.name)

    def _command(self, command: list[str]) -> list[str]:
        return self.applications[0].machine.on(*command)

    def _nodes(self) -> dict[str, str]:
        return {}
