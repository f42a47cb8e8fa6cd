"""Starts and stops the real programs, each with a configuration of this repository and on free ports."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Long enough for a machine that builds something else meanwhile.
PATIENCE = 60


class Failed(Exception):
    """A claim of a check does not hold."""


def must(claim, holds, why=""):
    if not holds:
        raise Failed(f"{claim}: no. {why}".rstrip(". "))


def free_ports(count):
    """Returns ports that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def get(url):
    """Returns status and body of an HTTP GET; status 0 if nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def wait_for(what, probe, patience=PATIENCE):
    """Calls `probe` until it returns something true, and returns that."""
    deadline = time.monotonic() + patience
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {patience} s")
        time.sleep(0.1)


class Service:
    """A program with a configuration, which can be stopped, killed and started again on the same ports and data."""

    def __init__(self, name, program, config, folder, settings, health):
        self.command = [str(program), "--config", str(ROOT / config)]
        self.log = Path(folder) / f"{name}.log"
        self.name, self.settings, self.health, self.process = name, settings, health, None

    def start(self):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "TRACEGATE_"))}
        kept |= {key: str(value) for key, value in self.settings.items()}
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, env=kept, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(f"{self.name} is healthy", self.ready)
        return self

    def ready(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
        return get(self.health)[0] == 200

    def stop(self, how=signal.SIGTERM):
        """Ends the process and returns how it ended."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(how)
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def tail(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


class Jaeger(Service):
    """Jaeger with Badger, and its query API."""

    def __init__(self, programs, folder):
        self.otlp, self.http, grpc, health = free_ports(4)
        super().__init__(
            "jaeger",
            programs / "jaeger",
            "docs/jaeger-badger.yaml",
            folder,
            {
                "TRACEGATE_JAEGER_DATA": Path(folder) / "jaeger",
                "TRACEGATE_JAEGER_UI": ROOT / "docs/jaeger-ui.json",
                "TRACEGATE_JAEGER_OTLP_PORT": self.otlp,
                "TRACEGATE_JAEGER_HTTP_PORT": self.http,
                "TRACEGATE_JAEGER_GRPC_PORT": grpc,
                "TRACEGATE_JAEGER_HEALTH_PORT": health,
            },
            f"http://127.0.0.1:{health}/status",
        )

    def ask(self, path, **query):
        """Returns the JSON that Jaeger answers, or nothing if it knows no such trace."""
        status, body = get(f"http://127.0.0.1:{self.http}{path}?{urllib.parse.urlencode(query)}")
        if status == 404:
            return None
        must(f"Jaeger answers {path}", status == 200, f"{status}: {body[:300]}")
        return json.loads(body)

    def trace(self, trace_id):
        """Returns the spans of a trace in OTLP's words, each with its resource and scope."""
        answer = self.ask(f"/api/v3/traces/{trace_id}") or {"result": {}}
        for resource in answer["result"].get("resourceSpans", []):
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    yield span, resource["resource"], scope["scope"]

    def shown(self, trace_id):
        """Returns a trace as its page gets it: spans with their warnings, and processes."""
        answer = self.ask(f"/api/traces/{trace_id}")
        return answer["data"][0] if answer else {"spans": [], "processes": {}}

    def search(self, service, tags):
        """Returns the ids of the traces that a search by tags finds, as the search page asks for them.

        The newer API of this Jaeger (`/api/v3/traces`) passes over `query.attributes` when it is asked over HTTP, and finds everything.
        """
        found = self.ask("/api/traces", service=service, tags=json.dumps(tags), lookback="24h", limit=100)
        return {trace["traceID"] for trace in found["data"]}


class Collector(Service):
    """The Collector of otel-collector.yaml."""

    def __init__(self, programs, folder, endpoint):
        self.grpc, self.http, health, self.span_metrics, self.metrics = free_ports(5)
        self.data = Path(folder) / "otelcol"
        super().__init__(
            "collector",
            programs / "otelcol",
            "otel-collector.yaml",
            folder,
            {
                "TRACEGATE_JAEGER_ENDPOINT": endpoint,
                "TRACEGATE_OTEL_DATA": self.data,
                "TRACEGATE_OTEL_GRPC_PORT": self.grpc,
                "TRACEGATE_OTEL_HTTP_PORT": self.http,
                "TRACEGATE_OTEL_HEALTH_PORT": health,
                "TRACEGATE_OTEL_SPAN_METRICS_PORT": self.span_metrics,
                "TRACEGATE_OTEL_METRICS_PORT": self.metrics,
            },
            f"http://127.0.0.1:{health}/",
        )

    def endpoint(self, protocol):
        return f"http://127.0.0.1:{self.grpc if protocol == 'grpc' else self.http}"

    def post(self, request):
        """Sends OTLP/JSON as any other program would."""
        body = json.dumps(request).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.http}/v1/traces", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def file(self):
        """Returns the spans of the OTLP file, whole lines only."""
        path = self.data / "traces.otlp.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        for line in lines:
            for resource in json.loads(line)["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        yield span, resource["resource"], scope["scope"]
