"""manage.py widget_build [--check] [--release]: build the widget's script and its frame document with esbuild.

Needs Node.js and `npm ci --ignore-scripts` in checkout/widget. `--release` keeps the script that was served before in
dist/builds/, so pages that name its hash keep working.
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
            "--release", action="store_true", help="keep the script that is replaced in dist/builds/, by its hash"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            built = build.build_widget()
        except build.BuildError as fault:
            raise CommandError(str(fault)) from None
        wanted = {
            build.WIDGET_SCRIPT_FILE: built.script,
            build.WIDGET_FRAME_FILE: built.frame,
            build.RECORD: built.record,
        }
        stale = [path for path, content in wanted.items() if not path.exists() or path.read_bytes() != content]
        if options["check"]:
            if stale:
                raise CommandError("run manage.py widget_build: " + ", ".join(path.name for path in stale))
            return
        if options["release"] and build.WIDGET_SCRIPT_FILE in stale and build.WIDGET_SCRIPT_FILE.exists():
            before = build.WIDGET_SCRIPT_FILE.read_bytes()
            build.WIDGET_BUILDS_DIR.mkdir(parents=True, exist_ok=True)
            (build.WIDGET_BUILDS_DIR / f"{hashlib.sha384(before).hexdigest()}.js").write_bytes(before)
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted[path])
        # Not committed and not served: developers load the map into the browser's tools by hand.
        build.SOURCE_MAP.write_bytes(built.source_map)
        self.stdout.write(f"{len(built.script)} bytes, sha384 {built.digest[:16]}…, {len(stale)} file(s) written")
