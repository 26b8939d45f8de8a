"""The code host (config.launcher.code_host): loads the product's code, then forks a program for each request.

A request is one message on standard input, a socket: the module to run and its arguments, with the descriptors of its
standard output and error. The answer is the process id. Before the first fork everything is loaded that the programs
need, no thread is started and no connection opened, and all objects are frozen for the garbage collector, which would
write to every shared page. A fork is made twice, so that the program becomes the launcher's child.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
import types
from pathlib import Path
from typing import Final

from config.launcher.child import run_module
from config.launcher.code_host import LOADED, MAX_MESSAGE_BYTES
from config.launcher.process import set_parent_death_signal

PRELOADED_MODULES: Final = (
    "config.web_worker", "gunicorn.app.wsgiapp", "gateway.api.wsgi_handler",
    "celery.bin.celery", "celery.apps.worker", "celery.apps.beat", "celery.concurrency.thread",
    "celery.worker.consumer", "celery.worker.strategy", "kombu.transport.redis",
    "config.worker", "config.beat", "config.launcher.prepare", "gateway.db.environment",
)  # fmt: skip


def main() -> int:
    """Load, then fork until the launcher closes the line."""
    line = socket.socket(fileno=os.dup(0))
    _load_code()
    line.send(LOADED)
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, MAX_MESSAGE_BYTES, 2)
        if not message:
            return 0
        request = json.loads(message)
        pid = _fork_twice()
        if pid == 0:
            line.close()
            return _run_program(request["module"], request["launcher"], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        line.send(str(pid).encode())


def _load_code() -> None:
    gc.disable()  # while modules are loaded nothing becomes garbage that is worth looking for
    import django
    from django.conf import settings

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    _leave_out_celery_shell()
    django.setup()
    from django.urls import get_resolver

    get_resolver().url_patterns  # noqa: B018 - views are loaded on first use
    for name in PRELOADED_MODULES:
        importlib.import_module(name)
    from django.apps import apps
    from django.utils import translation

    from config.celery import app
    from gateway.api.wsgi_handler import build_wsgi_application

    # What each program would do first, and write to shared pages for.
    app.finalize()
    app.loader.import_default_modules()
    build_wsgi_application()
    for model in apps.get_models(include_auto_created=True):
        model._meta.get_fields()
        str(model._base_manager.all().query)
    for language, _ in settings.LANGUAGES:
        with translation.override(language):
            translation.gettext("Payment")
    # What modules left behind while they were loaded is not worth the third of a second that it takes to find it.
    gc.freeze()
    gc.enable()


def _leave_out_celery_shell() -> None:
    """Let Celery's command line do without its interactive shell, for which it would load 160 modules of prompt_toolkit
    and others, and without colours, for which it would compile the hundred expressions of a lexer."""
    shell = types.ModuleType("click_repl")
    shell.__dict__["register_repl"] = lambda _group: None
    sys.modules.setdefault(shell.__name__, shell)
    sys.modules["pygments"] = None  # type: ignore[assignment]  # importing it is an ImportError
    importlib.import_module("celery.bin.base")
    del sys.modules["pygments"]


def _fork_twice() -> int:
    """The process id of a grandchild that our parent adopts; 0 in the grandchild."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        between = os.getpid()
        pid = os.fork()
        if pid:
            os.write(writing, str(pid).encode())
            os._exit(0)
        os.close(reading)
        os.close(writing)
        while os.getppid() == between:
            time.sleep(0.001)
        return 0
    os.close(writing)
    os.waitpid(between, 0)
    with os.fdopen(reading) as answer:
        return int(answer.read())


def _run_program(module: list[str], launcher: int, descriptors: list[int]) -> int:
    set_parent_death_signal(launcher, signal.SIGKILL)
    os.setsid()
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for descriptor, standard in zip(descriptors, (1, 2), strict=True):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    _set_command_line(f"{sys.executable} -m config.launcher.child {' '.join(module)} ")
    run_module(module)
    return 0


def _set_command_line(text: str) -> None:
    """Let `ps` show what this process is: its arguments are overwritten in place, as far as they reach (proc(5),
    arg_start and arg_end)."""
    fields = Path("/proc/self/stat").read_text().rpartition(") ")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if 0 < start < end:
        room = end - start
        ctypes.memmove(start, text.encode()[: room - 1].ljust(room, b"\0"), room)


if __name__ == "__main__":
    sys.exit(main())
