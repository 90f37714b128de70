"""The container files, without an engine: what is copied is there, nobody is root, signals arrive, no secrets."""

import json
import re
import shlex
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent


def instructions() -> list[tuple[str, str]]:
    """The lines of the Dockerfile, continued ones as one."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def last(name: str) -> str:
    return [rest for each, rest in instructions() if each == name][-1]


def is_sent(path: str) -> bool:
    """Whether .dockerignore lets a file through; the last line that matches decides."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!").rstrip("/")
        if line and not line.startswith("#") and (path.partition("/")[0] == pattern or fnmatch(path, pattern)):
            sent = line.startswith("!")
    return sent


def test_what_is_copied_is_there_and_nothing_else_is_sent() -> None:
    copied = [rest for name, rest in instructions() if name == "COPY" and not rest.startswith("--from=")]
    assert copied
    for rest in copied:
        for source in shlex.split(rest)[:-1]:
            assert (ROOT / source).exists(), source
            assert is_sent(source), source
    for secret in (".env", "decisions/tokens.json", ".git", "tests/served.py", "key.pem"):
        assert not is_sent(secret), secret
    for name, rest in instructions():
        if name == "RUN":
            for file in re.findall(r"-[rc] (\S+)", rest):
                assert (ROOT / file).is_file(), file
    assert "ADD" not in {name for name, _ in instructions()}
    assert not re.search(r"(?i)password|token|secret", " ".join(rest for name, rest in instructions() if name != "CMD"))


def test_nobody_is_root_and_signals_arrive() -> None:
    names = [name for name, _ in instructions()]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", last("USER")), "a number, not 0"
    assert names.index("USER") > names.index("COPY")
    assert json.loads(last("ENTRYPOINT")) == ["onebit"], "exec form: no shell between SIGTERM and onebit"
    assert json.loads(last("CMD"))[:2] == ["serve", "/data"]
    assert "/data" in json.loads(last("VOLUME"))
    check = last("HEALTHCHECK")
    assert "/healthz" in json.loads(check[check.index("[") :])[-1]
    assert names.count("FROM") == 2


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return read


def test_compose_publishes_nothing_beyond_this_machine() -> None:
    onebit, database = compose()["services"]["onebit"], compose()["services"]["database"]
    assert all(port.startswith("127.0.0.1:") for port in onebit["ports"])
    assert "ports" not in database
    assert database["networks"] == ["inside"]
    assert compose()["networks"]["inside"] == {"internal": True}
    assert onebit["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert database["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert (onebit["read_only"], onebit["cap_drop"]) == (True, ["ALL"])
    assert onebit["environment"]["ONEBIT_LOG"] == "postgresql://onebit@database/onebit"
    for said in (onebit["environment"]["PGPASSWORD"], database["environment"]["POSTGRES_PASSWORD"]):
        assert said.startswith("${ONEBIT_DATABASE_PASSWORD:?"), "nothing secret here, and no default for it"
    mounted = {volume.partition(":")[0] for each in (onebit, database) for volume in each["volumes"]}
    assert mounted == set(compose()["volumes"])
    assert {volume.partition(":")[2] for volume in onebit["volumes"]} == set(json.loads(last("VOLUME")))


def test_make_image_says_that_there_is_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    run = subprocess.run(["make", "image"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode != 0
    assert "needs a running docker engine" in run.stdout
