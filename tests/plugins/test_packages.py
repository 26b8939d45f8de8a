"""The plug-ins as packages: what each has, one version, and the page that offers them. docs/decisions/0078."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Final

import pytest
from django.test import Client

from gateway.portal.client_packages import CLIENTS_DIR, list_plug_ins

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = sorted(path for path in (CLIENTS_DIR / "plugins").iterdir() if path.is_dir())
VERSIONS: Final = re.compile(
    r"""(?:^version = |__version__ = | Version: |blocks\.js', [^']+')['"]?([0-9.]+)""", re.MULTILINE
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_plug_in_has_its_texts_and_one_version(folder: Path) -> None:
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    (package,) = (one for one in list_plug_ins().values() if one.language.lower() == folder.name)
    version = re.findall(r"-([0-9.]+[0-9])", package.file)[0]
    assert f"## {version}\n" in (folder / "CHANGELOG.md").read_text()
    sources = [*folder.rglob("*.py"), *folder.rglob("*.php"), *folder.rglob("*.toml")]
    assert {found for path in sources for found in VERSIONS.findall(path.read_text())} == {version}
    assert (folder / "README.md").read_text().startswith("# Tollhouse for ")


def test_the_page_offers_every_plug_in(client: Client) -> None:
    page = client.get("/docs/plug-ins").content.decode()
    for file, package in list_plug_ins().items():
        assert f"/docs/clients/{file}" in page
        answer = client.get(f"/docs/clients/{file}")
        assert (answer.status_code, answer.content) == (200, package.build())


def test_the_zip_for_wordpress_is_one_folder_with_the_client_in_it() -> None:
    (package,) = (one for name, one in list_plug_ins().items() if name.endswith(".zip"))
    with zipfile.ZipFile(BytesIO(package.build())) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert {name.partition("/")[0] for name in names} == {"tollhouse-woocommerce"}
    client = {f"tollhouse-woocommerce/client/{path.name}" for path in (CLIENTS_DIR / "php/src").glob("*.php")}
    assert client <= set(names)
    assert {"LICENSE", "README.md", "tollhouse-woocommerce.php"} <= {name.split("/", 1)[1] for name in names}


def test_the_wheel_for_pretix_is_found_by_pretix() -> None:
    (package,) = (one for one in list_plug_ins().values() if one.language == "pretix")
    with zipfile.ZipFile(BytesIO(package.build())) as archive:
        points = archive.read("pretix_tollhouse-0.1.0.dist-info/entry_points.txt").decode()
        assert "[pretix.plugin]\npretix_tollhouse = " in points
        assert any(name.endswith("locale/de/LC_MESSAGES/django.mo") for name in archive.namelist())
