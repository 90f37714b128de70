"""The files of `deploy/`: what they name is there, and what can be started on this machine is started."""

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

pytest.importorskip("starlette")

import onebit
from onebit import cli
from onebit.decider.client import LARGEST_BODY
from onebit.service.access import Tokens
from onebit.service.server import _LARGEST_HEAD, _MOST_CONNECTIONS
from served import DESK, LIGHT, Served, serving_here

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
SECONDS = 60.0


def text_of(name: str, changes: dict[str, Any] | None = None) -> str:
    """Return a file with some of its text exchanged, each of which it has once."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    for old, new in (changes or {}).items():
        assert text.count(old) == 1, old
        text = text.replace(old, str(new))
    return text


def program(name: str) -> str:
    """Return where a program is; skip the test where it is missing, or fail where it must be there."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        fail = pytest.fail if os.environ.get("ONEBIT_REQUIRE_DEPLOY") else pytest.skip
        fail(f"{name} is not installed")
    return found


def checked(*command: str | Path) -> str:
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


def until(look: Callable[[], Any]) -> Any:
    """Return what a function returns when it is true; what cannot be reached yet is asked again."""
    give_up = time.monotonic() + SECONDS
    while True:
        with suppress(OSError):
            if found := look():
                return found
        assert time.monotonic() < give_up
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def running(folder: Path, *command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that ends by SIGTERM, as it does under systemd."""
    with (folder / "said.txt").open("ab") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(text_of("prometheus/alerts.yml"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def shown() -> list[str]:
    """Return the expressions of the dashboard's panels, as Grafana would ask them."""
    panels = json.loads(text_of("grafana/onebit.json"))["panels"]
    found = [target["expr"] for panel in panels for target in panel["targets"]]
    for name, value in (("$__rate_interval", "1m"), ("$namespace", ".*"), ("$decider", ".*")):
        found = [expression.replace(name, value) for expression in found]
    assert "$" not in "".join(found)
    return found


def test_rules_and_dashboard_name_metrics_that_the_service_has(served: Served) -> None:
    made = served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}}).json
    served.ask("POST", f"{DESK}/tell", {"id": made["id"], "correct": True})
    text = served.ask("GET", "/metrics").body.decode()
    exported = set(re.findall(r"^(onebit_\w+)", text, flags=re.MULTILINE))
    named = set(re.findall(r"\bonebit_\w+", " ".join([*shown(), *(rule["expr"] for rule in alerts())])))
    assert len(named) > 8
    assert named <= exported
    variables = json.dumps(json.loads(text_of("grafana/onebit.json"))["templating"])
    assert set(re.findall(r"\bonebit_\w+", variables)) <= exported
    for verb in ("guess", "tell"):
        assert f'onebit_request_seconds_count{{verb="{verb}"}}' in text
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert [rule["alert"] for rule in alerts() if f"| `{rule['alert']}` |" not in page] == []
    tests = yaml.safe_load(text_of("prometheus/alerts_test.yml"))["tests"]
    rung = {each["alertname"] for test in tests for each in test["alert_rule_test"] if each["exp_alerts"]}
    assert rung == {rule["alert"] for rule in alerts()}


def manifests() -> list[dict[str, Any]]:
    files = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    return [part for file in files for part in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def test_the_manifest_starts_what_there_is_and_probes_what_answers(served: Served) -> None:
    kinds = {part["kind"]: part for part in manifests()}
    assert set(kinds) == {"PersistentVolumeClaim", "Pod", "Deployment", "Service"}
    claim = kinds["PersistentVolumeClaim"]["metadata"]["name"]
    template = kinds["Deployment"]["spec"]["template"]
    assert kinds["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}
    assert kinds["Deployment"]["spec"]["replicas"] == 1
    assert kinds["Deployment"]["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert kinds["Service"]["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert not kinds["Service"]["spec"]["selector"].items() <= kinds["Pod"]["metadata"]["labels"].items()
    for spec in (template["spec"], kinds["Pod"]["spec"]):
        (container,) = spec["containers"]
        name, *words = container["args"]
        if name == "tokens":
            assert words[:2] == ["add", "/data"]
        else:
            cli.load(name).make_context(name, list(words))
        assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsNonRoot"]) == (10001, True)
        assert "USER 10001:10001" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts == {"data": "/data", "tmp": "/tmp"}
        assert spec["volumes"][0] == {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    (container,) = template["spec"]["containers"]
    (port,) = container["ports"]
    assert str(port["containerPort"]) == container["args"][container["args"].index("--port") + 1]
    assert kinds["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["port"] == port["name"]
        assert served.ask("GET", asked["path"]).status == 200


@pytest.mark.ci
def test_rules_ring_when_they_should(tmp_path: Path) -> None:
    promtool = program("promtool")
    (tmp_path / "token").write_text("x")
    for name in ("alerts.yml", "alerts_test.yml"):
        shutil.copy(PROMETHEUS / name, tmp_path)
    settings = text_of("prometheus/prometheus.yml", {"/etc/prometheus/onebit.token": tmp_path / "token"})
    (tmp_path / "prometheus.yml").write_text(settings)
    assert f"{len(alerts())} rules found" in checked(promtool, "check", "config", tmp_path / "prometheus.yml")
    assert "SUCCESS" in checked(promtool, "test", "rules", tmp_path / "alerts_test.yml")


@pytest.mark.ci
def test_prometheus_reads_the_service_and_answers_the_dashboard(tmp_path: Path) -> None:
    prometheus = program("prometheus")
    tokens = Tokens(tmp_path / "decisions")
    (tmp_path / "decisions").mkdir()
    admin = tokens.add("admin", ["admin"], ["*"])
    (tmp_path / "token").write_text(tokens.add("prometheus", ["read"], ["*"]))
    shutil.copy(PROMETHEUS / "alerts.yml", tmp_path)
    with serving_here(tmp_path / "decisions") as url, onebit.Client(url, admin) as client:
        decider = client.create("shop/routing", classes=["a", "b"], learner="BanditPerceptron")
        port = free_port()
        changes = {
            "/etc/prometheus/onebit.token": tmp_path / "token",
            "scrape_interval: 15s": "scrape_interval: 1s",
            "evaluation_interval: 15s": "evaluation_interval: 1s",
            "127.0.0.1:8018": url.removeprefix("http://"),
        }
        (tmp_path / "prometheus.yml").write_text(text_of("prometheus/prometheus.yml", changes))

        def asked(path: str, **query: str) -> Any:
            address = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
            with urllib.request.urlopen(address, timeout=SECONDS) as answer:
                return json.load(answer)["data"]

        def value(expression: str) -> list[str]:
            return [each["value"][1] for each in asked("query", query=expression)["result"]]

        flags = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
        with running(tmp_path, prometheus, *flags, f"--web.listen-address=127.0.0.1:{port}"):
            until(lambda: value('up{job="onebit"}') == ["1"])
            decider.tell(decider.guess({"x": 1.0}).id, correct=False)
            until(lambda: value("onebit_wrong_total") == ["1"])
            until(lambda: all(value(expression) for expression in shown()))

            def health() -> list[str]:
                return [rule["health"] for group in asked("rules")["groups"] for rule in group["rules"]]

            until(lambda: health() and "unknown" not in health())
            assert health() == ["ok"] * len(alerts())


@pytest.mark.ci
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    verify = program("systemd-analyze")
    unit = tmp_path / "onebit.service"
    unit.write_text(
        text_of("systemd/onebit.service", {"/opt/onebit/bin/onebit": sys.executable, "User=onebit": "User=root"})
    )
    assert checked(verify, "verify", "--man=no", unit).strip() == ""


class Standby(BaseHTTPRequestHandler):
    """A service whose deciders are open in another."""

    n_asked = 0

    def do_GET(self) -> None:
        type(self).n_asked += 1
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_PUT = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.mark.ci
def test_nginx_before_the_command_of_the_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nginx, openssl = program("nginx"), program("openssl")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    about = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2", "-nodes"]
    checked(
        openssl,
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        *about,
        "-keyout",
        key,
        "-out",
        certificate,
    )
    standby = ThreadingHTTPServer(("127.0.0.1", 0), Standby)
    Thread(target=standby.serve_forever, daemon=True).start()
    service_port, port = free_port(), free_port()
    here = f"server 127.0.0.1:{standby.server_port} max_fails=0; server 127.0.0.1:{service_port} max_fails=0;"
    changes = {
        "server 127.0.0.1:8018 max_fails=0;": here,
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/ssl/onebit/certificate.pem": certificate,
        "/etc/ssl/onebit/key.pem": key,
        "limit_conn onebit_addresses 250;": "limit_conn onebit_addresses 3;",
    }
    (tmp_path / "onebit.conf").write_text(text_of("nginx/onebit.conf", changes))
    places = [f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
    user = "user root;" if os.getuid() == 0 else ""
    whole = f"""{user} daemon off; worker_processes 1; pid {tmp_path}/nginx.pid; error_log stderr; events {{}}
        http {{ access_log off; {" ".join(places)} include {tmp_path}/onebit.conf; }}"""
    (tmp_path / "nginx.conf").write_text(whole)
    checked(nginx, "-t", "-q", "-e", "stderr", "-c", tmp_path / "nginx.conf")

    trusted = ssl.create_default_context(cafile=str(certificate))

    def ask(
        method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPSConnection("localhost", port, timeout=SECONDS, context=trusted)
        try:
            connection.request(method, path, body, {"content-type": "application/json"} | (headers or {}))
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    folder = tmp_path / "decisions"
    line = re.findall(r"^ExecStart=(.*)", text_of("systemd/onebit.service"), flags=re.MULTILINE)[0]
    _, *words = shlex.split(line)
    assert words[:2] == ["serve", "/var/lib/onebit"]
    command = [sys.executable, "-m", "onebit", "serve", str(folder), *words[2:], "--port", str(service_port)]
    with (
        running(tmp_path, *command) as service,
        running(tmp_path, nginx, "-e", "stderr", "-c", tmp_path / "nginx.conf"),
    ):
        # It is said for whom nginx asks: without tokens the service refuses that.
        until(lambda: b"make a token first" in ask("GET", "/healthz")[2])
        token = Tokens(folder).add("admin", ["admin"], ["*"])
        mine = {"authorization": f"Bearer {token}"}
        until(lambda: ask("GET", "/v1", None, mine)[0] == 200)

        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with onebit.Client(f"https://localhost:{port}", token) as client:
            decider = client.create("shop/routing", **LIGHT)
            assert decider.tell(decider.guess({"x": 1.0}).id, correct=False)

        status, headers, _ = ask("GET", "/readyz")
        assert (status, headers["x-content-type-options"], headers["cache-control"]) == (200, "nosniff", "no-store")
        # The largest request that the service takes, and one that it refuses in its own words; then nginx does.
        guess = b'{"record": {"x": 1.0}}'
        assert ask("POST", f"{DESK}/guess", guess.ljust(LARGEST_BODY), mine)[0] == 200
        status, headers, _ = ask("POST", f"{DESK}/guess", guess.ljust(LARGEST_BODY + 1), mine)
        assert (status, headers["content-type"]) == (413, "application/problem+json")
        assert ask("POST", f"{DESK}/guess", guess.ljust((4 << 20) + 1), mine)[1]["content-type"] == "text/html"
        long = {f"x-long-{i}": "x" * 15_000 for i in range(4)}
        assert sum(map(len, long.values())) < _LARGEST_HEAD
        assert ask("GET", "/v1", None, mine | long)[0] == 200

        held = []
        for _ in range(3):
            sock = trusted.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
            sock.sendall(b"POST /v1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
            held.append(sock)
        until(lambda: ask("GET", "/healthz")[0] == 503)
        for sock in held:
            sock.close()
        until(lambda: ask("GET", "/healthz")[0] == 200)
        assert Standby.n_asked > 3, "a standby was asked first now and then, and nobody noticed"
        service.send_signal(signal.SIGTERM)
        assert service.wait(SECONDS) in (0, -signal.SIGTERM)
    standby.shutdown()
    standby.server_close()


def test_limits_of_the_examples_are_the_service_s() -> None:
    proxy, unit = text_of("nginx/onebit.conf"), text_of("systemd/onebit.service")
    assert LARGEST_BODY <= 4 << 20
    assert "client_max_body_size 4m;" in proxy
    assert f"limit_conn onebit_addresses {_MOST_CONNECTIONS // 4};" in proxy
    for said in (unit, text_of("kubernetes/onebit.yaml").replace('", "', " ").replace(', "', " ")):
        assert f"--max-connections {_MOST_CONNECTIONS}" in said
        assert f"--max-connections-per-address {_MOST_CONNECTIONS}" in said
    (files,) = re.findall(r"^LimitNOFILE=(\d+)", unit, flags=re.MULTILINE)
    assert int(files) >= 2 * _MOST_CONNECTIONS
