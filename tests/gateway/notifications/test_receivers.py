"""The programs of the webhooks' page read what the gateway sends, and refuse what it did not, in each language."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.portal.documents import DOCS_DIR
from tests.support.fixtures import Shop
from tests.support.webhook_delivery import deliver, register
from tests.support.webhooks import hooked

EXAMPLES: Final = DOCS_DIR / "examples" / "webhooks"
PATIENCE_S: Final = 180
SECRETS: Final = ("0" * 64, "f" * 64)

JAVASCRIPT: Final = """
import { readFileSync } from "node:fs";
import { readEncrypted, readSigned } from "./receiver.mjs";
for (const one of JSON.parse(readFileSync(0))) {
  const read = one.encrypted ? readEncrypted : readSigned;
  try { console.log(read(one.headers, Buffer.from(one.body, "base64"), one.secrets).payload?.id ?? "test"); }
  catch (fault) { console.log(`refused: ${fault.message}`); }
}
"""
PHP: Final = """<?php
require 'receiver.php';
foreach (json_decode(file_get_contents('php://stdin'), true) as $one) {
    try {
        $read = $one['encrypted'] ? readEncrypted(...) : readSigned(...);
        echo $read($one['headers'], base64_decode($one['body']), $one['secrets'])['payload']['id'] ?? 'test', "\\n";
    } catch (RuntimeException | JsonException $fault) { echo 'refused: ', $fault->getMessage(), "\\n"; }
}
"""
# Java has no JSON of its own: one message is four lines and its headers, until an empty line.
JAVA: Final = """
final class Program {
    public static void main(String[] words) throws Exception {
        var lines = new java.util.Scanner(System.in);
        while (lines.hasNextLine()) {
            boolean encrypted = lines.nextLine().equals("true");
            byte[] body = Base64.getDecoder().decode(lines.nextLine());
            List<String> secrets = List.of(lines.nextLine().split(" "));
            Map<String, String> headers = new java.util.HashMap<>();
            for (String line = lines.nextLine(); !line.isEmpty(); line = lines.nextLine()) {
                String[] parts = line.split(": ", 2);
                headers.put(parts[0], parts[1]);
            }
            try {
                String found = encrypted ? Receiver.readEncrypted(headers, body, secrets)
                    : Receiver.readSigned(headers, body, secrets);
                var id = Pattern.compile("\\"id\\": ?\\"([0-9a-f]{32})\\"").matcher(found);
                System.out.println(id.find() ? id.group(1) : "test");
            } catch (GeneralSecurityException fault) { System.out.println("refused: " + fault.getMessage()); }
        }
    }
}
"""


def ask_javascript(folder: Path, messages: list[dict[str, Any]]) -> list[str]:
    shutil.copy(EXAMPLES / "receiver.mjs", folder)
    (folder / "run.mjs").write_text(JAVASCRIPT)
    return run_program(["node", "run.mjs"], folder, json.dumps(messages))


def ask_php(folder: Path, messages: list[dict[str, Any]]) -> list[str]:
    shutil.copy(EXAMPLES / "receiver.php", folder)
    (folder / "run.php").write_text(PHP)
    return run_program(["php", "run.php"], folder, json.dumps(messages))


def ask_java(folder: Path, messages: list[dict[str, Any]]) -> list[str]:
    shown = (EXAMPLES / "Receiver.java").read_text()
    at = shown.index("/**")
    (folder / "Program.java").write_text(shown[:at] + JAVA + shown[at:])
    lines = [
        "\n".join(
            [
                str(one["encrypted"]).lower(),
                one["body"],
                " ".join(one["secrets"]),
                *(f"{name}: {value}" for name, value in one["headers"].items()),
                "",
            ]
        )
        for one in messages
    ]
    return run_program(["java", "Program.java"], folder, "\n".join(lines) + "\n")


ASKED: Final = {"node": ask_javascript, "php": ask_php, "java": ask_java}


def run_program(command: list[str], folder: Path, given: str) -> list[str]:
    if shutil.which(command[0]) is None and not os.environ.get("CI"):
        pytest.skip(f"{command[0]} is not installed here")
    done = subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.django_db
@pytest.mark.parametrize("program", ASKED)
def test_what_the_page_shows_reads_our_webhooks(shop: Shop, tmp_path: Path, program: str) -> None:
    kinds: dict[str, dict[str, str]] = {
        "signed": {"mode": "signed"},
        "plain": {"mode": "encrypted"},
        "wrapped": {"mode": "encrypted", "wrapper": "json"},
    }
    messages: list[dict[str, Any]] = []
    wanted: list[str] = []
    for kind, values in kinds.items():
        with hooked() as hook:
            endpoint, secret = register(shop, hook, **values)
            paid = shop.api.pay()
            deliver(shop)
            endpoint.state = "off"
            endpoint.save()
            for at, told in enumerate(hook.told):
                fact = {"encrypted": kind != "signed", "headers": told.headers}
                body = base64.b64encode(told.body).decode()
                messages.append({**fact, "body": body, "secrets": [SECRETS[0], secret]})
                wanted.append("test" if at == 0 else paid.id)
                messages.append({**fact, "body": body, "secrets": list(SECRETS)})
                spoilt = base64.b64encode(told.body.replace(b"a", b"b").replace(b"1", b"2")).decode()
                messages.append({**fact, "body": spoilt, "secrets": [secret]})
                messages.append({**fact, "headers": {"x-nothing": "at all"}, "body": body, "secrets": [secret]})
                old = {**told.headers, "webhook-timestamp": "1000000000", "x-authentication-tag": "00" * 16}
                messages.append({**fact, "headers": old, "body": body, "secrets": [secret]})
                short = {**told.headers, "webhook-signature": "v1,", "x-authentication-tag": "00"}
                messages.append({**fact, "headers": short, "body": body, "secrets": [secret]})
                wanted += ["refused"] * 5
    found = ASKED[program](tmp_path, messages)
    assert [line.partition(":")[0] for line in found] == wanted
