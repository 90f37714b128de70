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

from onebit.cli.serve import _PASSWORD_FILE_VARIABLE
from onebit.service.app import _MOST_THREADS
from onebit.service.server import _MOST_CONNECTIONS
from onebit.service.workers import _MOST_DECIDERS

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
    for secret in (".env", "secrets/database_password", "decisions/tokens.json", ".git", "tests/served.py", "key.pem"):
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
    assert [rest.partition(" ")[0] for name, rest in instructions() if name == "FROM"] == ["${PYTHON_IMAGE}"] * 2


def test_the_image_has_everything_compiled_for_the_user_who_runs_it() -> None:
    lines = instructions()
    (cache,) = [rest.partition("NUMBA_CACHE_DIR=")[2] for name, rest in lines if "NUMBA_CACHE_DIR=" in rest]
    at = lines.index(("RUN", "onebit warm-up all"))
    assert at > lines.index(("USER", last("USER"))), "code that root compiled is not loaded"
    assert at > next(i for i, (name, rest) in enumerate(lines) if name == "ENV" and cache in rest)
    made = next(rest for name, rest in lines if name == "RUN" and "install --directory" in rest)
    assert cache in made
    assert "--owner=10001" in made
    assert cache not in json.loads(last("VOLUME")), "an older volume would hide it"


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
    mounted = {volume.partition(":")[0] for each in (onebit, database) for volume in each["volumes"]}
    assert mounted == set(compose()["volumes"])
    assert {volume.partition(":")[2] for volume in onebit["volumes"]} == set(json.loads(last("VOLUME")))


def test_the_password_is_in_a_file_alone() -> None:
    (name,) = compose()["secrets"]
    assert compose()["secrets"][name] == {"file": f"./secrets/{name}"}
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "secrets/" in ignored
    services = compose()["services"]
    for service, variable in (("onebit", _PASSWORD_FILE_VARIABLE), ("database", "POSTGRES_PASSWORD_FILE")):
        assert services[service]["secrets"] == [name]
        assert services[service]["environment"][variable] == f"/run/secrets/{name}"
        assert not {"PGPASSWORD", "POSTGRES_PASSWORD"} & set(services[service]["environment"]), "seen by docker inspect"


@pytest.mark.parametrize("service", ["onebit", "database"])
def test_each_container_has_limits_and_no_capabilities(service: str) -> None:
    said = compose()["services"][service]
    assert said["cap_drop"] == ["ALL"]
    assert "cap_add" not in said
    assert said["security_opt"] == ["no-new-privileges:true"]
    assert re.fullmatch(r"[1-9]\d*g", said["mem_limit"])
    assert said["pids_limit"] > 0
    assert said["ulimits"]["nofile"] >= 2 * _MOST_CONNECTIONS
    assert said.get("user", "onebit's is in the Dockerfile") != "root"
    if service == "onebit":
        assert said["pids_limit"] > _MOST_DECIDERS + _MOST_THREADS


BASES = {"PYTHON_IMAGE": "python:3.11-slim-bookworm", "POSTGRES_IMAGE": "postgres:17-bookworm"}


def test_base_images_may_be_named_by_digest() -> None:
    services = compose()["services"]
    assert services["database"]["image"] == f"${{POSTGRES_IMAGE:-{BASES['POSTGRES_IMAGE']}}}"
    assert services["onebit"]["build"]["args"] == {"PYTHON_IMAGE": f"${{PYTHON_IMAGE:-{BASES['PYTHON_IMAGE']}}}"}
    assert f"PYTHON_IMAGE={BASES['PYTHON_IMAGE']}" == last("ARG")


def test_make_pin_images_writes_the_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an engine that says which digest each image has; another setting stays in the file."""
    digests = {image: f"sha256:{digit * 64}" for image, digit in zip(BASES.values(), "ab", strict=True)}
    cases = "\n".join(f'  *{image}*) echo "{digest}";;' for image, digest in digests.items())
    docker, written = tmp_path / "docker", tmp_path / "images.env"
    docker.write_text(f'#!/bin/sh\ncase "$*" in\n  info) ;;\n{cases}\n  *) exit 1;;\nesac\n', encoding="utf-8")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    written.write_text("OTHER=1\nPYTHON_IMAGE=python:old@sha256:0\n", encoding="utf-8")
    for _ in range(2):
        run = subprocess.run(["make", "pin-images", f"ENV_FILE={written}"], cwd=ROOT, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        expected = ["OTHER=1", *(f"{name}={image}@{digests[image]}" for name, image in BASES.items())]
        assert written.read_text(encoding="utf-8").splitlines() == expected
    docker.write_text('#!/bin/sh\n[ "$1" = info ]\n', encoding="utf-8")
    run = subprocess.run(["make", "pin-images", f"ENV_FILE={written}"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode != 0
    assert written.read_text(encoding="utf-8").splitlines() == expected, "as it was"


def test_make_image_says_that_there_is_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    run = subprocess.run(["make", "image"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode != 0
    assert "needs a running docker engine" in run.stdout
