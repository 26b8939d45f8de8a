"""manage.py widget_build [--check] [--release]: build the widget's script and its frame document with esbuild.

Needs Node.js and `npm ci --ignore-scripts` in checkout/widget. `--release` keeps the scripts that were served before in
dist/builds/, so pages that name their hash keep working.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from checkout.widget import build


class Command(BaseCommand):
    """Build the widget, or check that the committed build is current."""

    help = "Build the widget's script and the document of its hosted fields."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail if the committed files are old")
        parser.add_argument(
            "--release", action="store_true", help="keep the scripts that are replaced in dist/builds/, by their hash"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            built = build.build_widget()
        except build.BuildError as fault:
            raise CommandError(str(fault)) from None
        wanted = {
            build.WIDGET_SCRIPT_FILE: built.script,
            build.SECOND_SCRIPT_FILE: built.second,
            build.WIDGET_FRAME_FILE: built.frame,
            build.RECORD: built.record,
        }
        stale = [path for path, content in wanted.items() if not path.exists() or path.read_bytes() != content]
        if options["check"]:
            if stale:
                raise CommandError("run manage.py widget_build: " + ", ".join(path.name for path in stale))
            return
        if options["release"]:
            for path in (build.WIDGET_SCRIPT_FILE, build.SECOND_SCRIPT_FILE):
                if path in stale and path.exists():
                    _keep_build(path.read_bytes())
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted[path])
        # Not committed and not served: developers load the map into the browser's tools by hand.
        build.SOURCE_MAP.write_bytes(built.source_map)
        self.stdout.write(f"{len(built.script)} bytes, sha384 {built.digest[:16]}…, {len(stale)} file(s) written")


def _keep_build(script: bytes) -> None:
    build.WIDGET_BUILDS_DIR.mkdir(parents=True, exist_ok=True)
    (build.WIDGET_BUILDS_DIR / f"{hashlib.sha384(script).hexdigest()}.js").write_bytes(script)
