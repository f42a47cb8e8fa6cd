"""Runs a real Collector and a real Jaeger with this repository's configurations, sends runs through them and reads them back.

    run.py PROGRAMS TRACEGATE CHECK [DIR]

PROGRAMS is the folder that `build` printed, TRACEGATE our program. CHECK is one of the functions at the end of this file: validate,
readback, redaction, outage, sampling. DIR (a new temporary folder if left out) takes stores, data and logs. What must be there is
computed from a run's events alone, as in tests/otlp/compare.py. Exit 0 if everything holds, 1 with what does not.
"""

import json
import os
import random
import re
import signal
import string
import subprocess
import sys
import tempfile
from pathlib import Path

from services import ROOT, Collector, Failed, Jaeger, Service, free_ports, get, must, wait_for

sys.path.insert(0, str(ROOT / "tests/otlp"))
from compare import expected  # noqa: E402 - it lies in another folder

# The actions that are failures of the action, not results of a gate.
BROKEN = ("failed", "timeout", "cancelled", "unknown")


def plain(value):
    """Returns an attribute's value, whatever its kind, in a form that two programs write alike."""
    kind, inner = next(iter(value.items()))
    if kind == "arrayValue":
        return [plain(item) for item in inner.get("values", [])]
    return int(inner) if kind == "intValue" else inner


def attributes(pairs):
    found = {pair["key"]: plain(pair["value"]) for pair in pairs}
    must("an attribute stands there once", len(found) == len(pairs))
    return found


def facts(span, resource, scope):
    """Returns all that a span says, without what OTLP leaves open how to write."""
    status = span.get("status", {})
    return {
        "trace": span["traceId"],
        "parent": span.get("parentSpanId", ""),
        "name": span["name"],
        "kind": span["kind"],
        "start": int(span["startTimeUnixNano"]),
        "end": int(span["endTimeUnixNano"]),
        "attributes": attributes(span.get("attributes", [])),
        "events": [
            (event["name"], int(event["timeUnixNano"]), attributes(event.get("attributes", [])))
            for event in span.get("events", [])
        ],
        "links": [
            (link["traceId"], link["spanId"], attributes(link.get("attributes", []))) for link in span.get("links", [])
        ],
        "error": status.get("code", 0) == 2,
        "message": status.get("message", ""),
        "resource": attributes(resource["attributes"]),
        "scope": scope["name"],
    }


def failed(event):
    """Tells whether docs/spans.md makes the span red that an event ends."""
    kind, _, edge = event["type"].rpartition(".")
    data = event["data"]
    if edge != "finished" or kind == "agent.step":
        return False
    if data.get("healed"):
        return data["error"]["type"] != "suspended"
    return (kind == "tool.execute" and data["outcome"] in BROKEN) or (kind == "segment" and data["status"] == "failed")


class Run:
    """A recorded run: its log, and what its spans must be."""

    def __init__(self, folder):
        self.folder = folder
        with open(folder / "events.jsonl", encoding="utf-8") as file:
            self.events = [json.loads(line) for line in file]
        self.trace, self.resource, self.pairs, still_open = expected(self.events)
        must("every span of the log ends", not still_open)
        self.service = self.resource["service.name"]
        self.red = {event["span"] for event in self.events if failed(event)}
        self.said = {}
        for line in open(folder / "traces.otlp.jsonl", encoding="utf-8"):
            for resource in json.loads(line)["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        self.said[span["spanId"]] = facts(span, resource["resource"], scope["scope"])


class Bench:
    """A folder with a store in which runs are made."""

    def __init__(self, tracegate, folder):
        self.tracegate, self.folder, self.made = tracegate, Path(folder), 0

    def surroundings(self, protocol):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "TRACEGATE_", "TRACEPARENT"))}
        return kept | {
            "TRACEGATE_STORE": str(self.folder / f"store-{self.made}"),
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc" if protocol == "grpc" else "http/protobuf",
        }

    def newest(self):
        (folder,) = (self.folder / f"store-{self.made}" / "runs").glob("run_*")
        return folder

    def tell(self, *words, protocol="grpc", code=0):
        kept = self.surroundings(protocol)
        done = subprocess.run([self.tracegate, *words], env=kept, cwd=self.folder, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        must(f"`tracegate {' '.join(words)}` exits {code}", done.returncode == code, f"{done.returncode}:\n{said}")
        return said

    def demo(self, endpoint, *words, protocol="grpc"):
        """Runs a demo of its own store that exports while it goes on, and returns it."""
        self.made += 1
        said = self.tell("demo", *words, "--export", endpoint, protocol=protocol)
        must("nothing is pending at the end", "send them: tracegate export" not in said, said)
        return Run(self.newest())

    def killed(self, endpoint):
        """Kills a demo while its tests run, and returns the run as an export without a resume leaves it."""
        self.made += 1

        def testing():
            must("the demo still runs", process.poll() is None)
            logs = (self.folder / f"store-{self.made}").glob("runs/run_*/events.jsonl")
            return any('"tool.execute.started"' in line and "npm test" in line for log in logs for line in log.open())

        with (self.folder / "killed.log").open("w") as log:
            process = subprocess.Popen(
                [self.tracegate, "demo", "--export", endpoint], env=self.surroundings("grpc"), cwd=self.folder, stdout=log, stderr=log
            )
        try:
            wait_for("the demo runs its tests", testing)
        finally:
            process.kill()
            process.wait()
        self.tell("export", "@last", "--endpoint", endpoint)
        return Run(self.newest())

    def resumed(self, endpoint):
        """Goes on with a killed demo in a second process, and returns the run."""
        # Its claim stays unproven: nobody saw how the tests ended.
        self.tell("resume", "@last", "--export", endpoint, code=10)
        return Run(self.newest())

    def export(self, endpoint, protocol="grpc"):
        """Sends the newest run again, whatever was acknowledged, and returns what was said."""
        return self.tell("export", "@last", "--endpoint", endpoint, "--again", protocol=protocol)


def as_kept(value, given):
    """Reads a list back: Badger, as Jaeger's older storages, keeps it as text, in JSON."""
    return json.loads(value) if isinstance(given, list) and isinstance(value, str) else value


def compare(run, spans, where):
    """Compares spans that came back with the run that they come from."""
    came = list(spans)
    ids = [span["spanId"] for span, _, _ in came]
    missing = [run.pairs[key]["name"] for key in run.pairs if key not in ids]
    twice = len(ids) - len(set(ids))
    unknown = [key for key in ids if key not in run.pairs]
    wrong = []
    for span, resource, scope in came:
        key, found = span["spanId"], facts(span, resource, scope)
        if key not in run.pairs:
            continue
        pair, said = run.pairs[key], run.said[key]
        # From the events alone, then everything else as it was written beside the log.
        rows = [(name, pair[name], found[name]) for name in ("parent", "name", "start", "end")]
        rows += [("trace", run.trace, found["trace"]), ("error", key in run.red, found["error"])]
        if where == "Jaeger":
            # Badger keeps no attributes of links; the relation stands on the span as well.
            links = [link[:2] for link in found.pop("links")]
            rows.append(("links", [link[:2] for link in said["links"]], links))
        attrs, given = found.pop("attributes"), said["attributes"]
        rows += [(name, it, as_kept(attrs.get(name), it)) for name, it in given.items()]
        rows += [(name, "absent", it) for name, it in attrs.items() if name not in given]
        rows += [(name, said[name], it) for name, it in found.items()]
        wrong += [f"{pair['name']} {key}: {name} is {it!r}, not {right!r}" for name, right, it in rows if it != right]
    roots = [span["name"] for span, _, _ in came if not span.get("parentSpanId")]
    lost = [span["spanId"] for span, _, _ in came if span.get("parentSpanId") and span["parentSpanId"] not in ids]
    print(
        f"{where}: {len(run.pairs)} spans in the log, {len(ids)} came back, {len(missing)} missing, {twice} twice, "
        f"{len(unknown)} unknown, {len(wrong)} differences, {len(run.red)} red, root {', '.join(roots)}"
    )
    must(f"{where}: all spans are there, once and equal", not (missing or twice or unknown or wrong), "\n".join(wrong[:20]))
    must(f"{where}: one root, and every parent is there", roots == [f"invoke_agent {run.service}"] and not lost)


def arrived(jaeger, run, patience=60):
    """Waits until Jaeger has as many spans of a run as the log, then compares them and looks at what its page gets."""
    wait_for(
        f"Jaeger has {len(run.pairs)} spans",
        lambda: len({span["spanId"] for span, _, _ in jaeger.trace(run.trace)}) >= len(run.pairs),
        patience,
    )
    compare(run, jaeger.trace(run.trace), "Jaeger")
    page = jaeger.shown(run.trace)
    # Later segments lie after their parent, which the page of this Jaeger takes for a wrong clock. Newer ones ask for host.id first, as
    # the API that `compare` has asked does already.
    later = {key for key, said in run.said.items() if said["attributes"]["tracegate.segment"] > 1}
    warnings = [
        (span["operationName"], warning)
        for span in page["spans"]
        for warning in span.get("warnings") or []
        if not (span["spanID"] in later and "clock skew" in warning)
    ]
    must("Jaeger warns about nothing", not warnings, str(warnings))
    must("its page has every span once", sorted(span["spanID"] for span in page["spans"]) == sorted(run.pairs))
    marked = {
        span["spanID"]
        for span in page["spans"]
        if any(tag["key"] == "error" and tag["value"] in (True, "true") for tag in span["tags"])
    }
    must("its page marks as red what failed, and nothing else", marked == run.red, f"{marked} {run.red}")


def validate(programs, bench):
    """Every configuration of the repository is accepted by the program that it is for."""
    files = [("otelcol", ROOT / "otel-collector.yaml"), ("jaeger", ROOT / "docs/jaeger-badger.yaml")]
    for path in sorted((ROOT / "docs/fleet").glob("*.yaml")):
        files.append(("jaeger" if path.name.startswith("jaeger-") else "otelcol", path))
    for program, path in files:
        done = subprocess.run(
            [programs / program, "validate", "--config", path], cwd=bench.folder, capture_output=True, text=True, check=False
        )
        must(f"`{program} validate` accepts {path.relative_to(ROOT)}", done.returncode == 0, done.stderr[-2000:])
        print(f"{program} accepts {path.relative_to(ROOT)}")
    broken = bench.folder / "broken.yaml"
    broken.write_text(files[0][1].read_text().replace("block_on_overflow", "block_on_overflows"))
    done = subprocess.run([programs / "otelcol", "validate", "--config", broken], capture_output=True, check=False)
    must("a misspelt setting is refused", done.returncode != 0)
    print(f"{len(files)} configurations accepted")


def readback(programs, bench):
    """A failed and a completed run come back from Jaeger as they were recorded."""
    jaeger = Jaeger(programs, bench.folder)
    collector = Collector(programs, bench.folder, f"127.0.0.1:{jaeger.otlp}")
    try:
        jaeger.start(), collector.start()
        for protocol in ("grpc", "http"):
            endpoint = collector.endpoint(protocol)
            failed = bench.demo(endpoint, protocol=protocol)
            arrived(jaeger, failed)
            fixed = bench.demo(endpoint, "--fixed", protocol=protocol)
            arrived(jaeger, fixed)
            must("the completed run has no red span", not fixed.red)
            must("the failed run is red at its root and at the failed test", len(failed.red) == 2)
            names = sorted(failed.pairs[key]["name"] for key in failed.red)
            must("these are its names", names == [f"invoke_agent {failed.service}", "tool.execute"], str(names))
            for tags, with_failed, with_fixed in [
                ({"tracegate.stop_reason": "validation_failed"}, True, False),
                ({"tracegate.stop_reason": "completed"}, False, True),
                ({"tracegate.verdict": "failed"}, True, False),
                ({"tracegate.run.id": failed.folder.name}, True, False),
                ({"error": "true"}, True, False),
                ({"error.type": "exit_code", "gen_ai.tool.name": "shell_readonly"}, True, False),
                ({"tracegate.permission.decision": "allow"}, True, True),
            ]:
                found = jaeger.search(failed.service, tags)
                must(f"{tags} finds what it should", (failed.trace in found, fixed.trace in found) == (with_failed, with_fixed))
                print(f"search {json.dumps(tags)}: {len(found)} traces")
        killed = bench.killed(collector.endpoint("grpc"))
        must("an export ends what the kill left open", len(killed.red) > 1)
        arrived(jaeger, killed)
        killed = bench.resumed(collector.endpoint("grpc"))
        arrived(jaeger, killed)
        segments = [pair for pair in killed.pairs.values() if pair["name"].startswith("invoke_agent ")]
        must("the killed run has two segments", len(segments) == 2)
        found = jaeger.search(killed.service, {"tracegate.healed": "true"})
        must("a search for what was cut off finds the killed run alone", found == {killed.trace}, str(found))
        for run in (failed, fixed):
            written = lambda: [row for row in collector.file() if row[0]["traceId"] == run.trace]  # noqa: E731, B023
            wait_for("the OTLP file has the spans", lambda: len(written()) >= len(run.pairs))  # noqa: B023
            compare(run, written(), "OTLP file")
        wait_for("span metrics count the stop reason", lambda: 'tracegate_stop_reason="validation_failed"' in metrics(collector))
        for label in ("gen_ai_tool_name", "tracegate_permission_decision", "gen_ai_request_model"):
            must(f"span metrics have {label}", f'{label}="' in metrics(collector))
        print("span metrics: by stop reason, tool, decision and model")
        links(jaeger)
        services = jaeger.ask("/api/services")["data"]
        must("Jaeger lists our service and no other", services == [failed.service], str(services))
    finally:
        collector.stop(), jaeger.stop()


def metrics(collector):
    return get(f"http://127.0.0.1:{collector.span_metrics}/metrics")[1]


def redaction(programs, bench):
    """What another program puts into a trace is redacted by the Collector, and numbers about tokens stay."""

    def secret(prefix, length):
        return prefix + "".join(random.choices(string.ascii_letters + string.digits, k=length))

    secrets = {
        "model key": secret("sk-", 40),
        "forge token": secret("ghp_", 36),
        "cloud key": "AKIA" + "".join(random.choices(string.ascii_uppercase + string.digits, k=16)),
        "web token": ".".join([secret("eyJ", 20), secret("", 30), secret("", 40)]),
        "bearer": secret("", 24),
        "password": secret("", 12),
        "private key": f"-----BEGIN RSA PRIVATE KEY-----\n{secret('', 64)}\n-----END RSA PRIVATE KEY-----",
    }

    def text(key, value):
        return {"key": key, "value": {"stringValue": value}}

    trace, span, plainer = os.urandom(16).hex(), os.urandom(8).hex(), os.urandom(8).hex()
    now = random.getrandbits(20) + 10**9 * int(subprocess.check_output(["date", "+%s"]))
    request = {
        "resourceSpans": [
            {
                "resource": {"attributes": [text("service.name", "somebody-else"), text("deployment.token.note", secrets["forge token"])]},
                "scopeSpans": [
                    {
                        "scope": {"name": "somebody"},
                        "spans": [
                            {
                                "traceId": trace,
                                "spanId": span,
                                "name": f"deploy {secrets['model key']}",
                                "kind": 1,
                                "startTimeUnixNano": str(now),
                                "endTimeUnixNano": str(now + 10**6),
                                "attributes": [
                                    text("note", f"the key {secrets['model key']} was used"),
                                    text("cloud", secrets["cloud key"]),
                                    text("web", f"x={secrets['web token']}"),
                                    text("pem", secrets["private key"]),
                                    text("http.request.header.authorization", secrets["bearer"]),
                                    text("db.password", secrets["password"]),
                                    {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "4711"}},
                                    {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "12"}},
                                    text("command", "npm test exit 1"),
                                ],
                                "events": [{"name": "said", "timeUnixNano": str(now), "attributes": [text("line", secrets["forge token"]), text("long", "x" * 10_000)]}],
                                "status": {"code": 2, "message": f"refused {secrets['model key']}"},
                            },
                            # Most spans have no events.
                            {
                                "traceId": trace,
                                "spanId": plainer,
                                "parentSpanId": span,
                                "name": f"ask {secrets['model key']}",
                                "kind": 1,
                                "startTimeUnixNano": str(now + 1),
                                "endTimeUnixNano": str(now + 1000),
                                "attributes": [text("note", secrets["model key"]), text("long", "x" * 100_000)],
                            },
                        ],
                    }
                ],
            }
        ]
    }
    jaeger = Jaeger(programs, bench.folder)
    collector = Collector(programs, bench.folder, f"127.0.0.1:{jaeger.otlp}")
    try:
        jaeger.start(), collector.start()
        answer = collector.post(request)
        must("all of it is accepted", not answer.get("partialSuccess"), str(answer))
        wait_for("it is in Jaeger", lambda: len(list(jaeger.trace(trace))) == 2)
        wait_for("it is in the OTLP file", lambda: list(collector.file()))
        for where, rows in [("Jaeger", list(jaeger.trace(trace))), ("OTLP file", list(collector.file()))]:
            must(f"{where} has both spans", sorted(row[0]["spanId"] for row in rows) == sorted([span, plainer]))
            for name, value in secrets.items():
                must(f"{where} shows no {name}", json.dumps(value)[1:-1] not in json.dumps(rows), json.dumps(rows))
            found = {row[0]["spanId"]: facts(*row) for row in rows}
            lengths = len(found[plainer]["attributes"]["long"]), len(found[span]["events"][0][2]["long"])
            must(f"{where} has long values cut", lengths == (32768, 8192), str(lengths))
            kept = found[span]["attributes"]
            for key, value in [("gen_ai.usage.input_tokens", 4711), ("gen_ai.usage.output_tokens", 12), ("command", "npm test exit 1")]:
                must(f"{where} keeps {key}", kept.get(key) == value, str(kept))
            print(f"{where}: none of {len(secrets)} secrets, token counts kept, long values cut")
        for path in Path(bench.folder, "otelcol", "queue").iterdir():
            body = path.read_bytes()
            must("none is in the queue on disk", not any(value.encode() in body for value in secrets.values()), path.name)
    finally:
        collector.stop(), jaeger.stop()


def outage(programs, bench):
    """Jaeger is away and the Collector is killed: nothing is missing, and sending again adds nothing."""
    jaeger = Jaeger(programs, bench.folder)
    collector = Collector(programs, bench.folder, f"127.0.0.1:{jaeger.otlp}")
    try:
        jaeger.start(), collector.start()
        before = bench.demo(collector.endpoint("grpc"))
        arrived(jaeger, before)
        must("Jaeger ends when told to", jaeger.stop() == 0)
        runs = [before]
        for words, protocol in [((), "grpc"), (("--fixed",), "http")]:
            runs.append(bench.demo(collector.endpoint(protocol), *words, protocol=protocol))
        print(f"Jaeger is away: {sum(len(run.pairs) for run in runs[1:])} spans accepted by the Collector")
        must("the Collector is killed", collector.stop(signal.SIGKILL) == -signal.SIGKILL)
        jaeger.start()
        must("Jaeger has none of them yet", not any(list(jaeger.trace(run.trace)) for run in runs[1:]))
        collector.start()
        for run in runs:
            arrived(jaeger, run)
        last = runs[-1]
        counts = []
        for again in range(3):
            protocol = ("grpc", "http", "grpc")[again]
            said = bench.export(collector.endpoint(protocol), protocol)
            must("everything is sent again", f"sent {len(last.pairs)} of {len(last.pairs)} spans" in said, said)
            wait_for(
                "the Collector has passed it on",
                lambda: len([row for row in collector.file() if row[0]["traceId"] == last.trace]) >= len(last.pairs) * (again + 2),  # noqa: B023
            )
            wait_for("the queue is empty", lambda: queued(collector) == 0)
            arrived(jaeger, last)
            counts.append(len(list(jaeger.trace(last.trace))))
        must("three exports later the counts are the same", counts == [len(last.pairs)] * 3, str(counts))
        must("Jaeger is killed", jaeger.stop(signal.SIGKILL) == -signal.SIGKILL)
        jaeger.start()
        for run in runs:
            arrived(jaeger, run)
        print(f"after the kill of Jaeger too: {sum(len(run.pairs) for run in runs)} spans of {len(runs)} runs are there")
    finally:
        collector.stop(), jaeger.stop()


def queued(collector):
    """Returns how much waits in the Collector for Jaeger."""
    for line in get(f"http://127.0.0.1:{collector.metrics}/metrics")[1].splitlines():
        if line.startswith("otelcol_exporter_queue_size{") and 'exporter="otlp_grpc/jaeger"' in line:
            return float(line.rsplit(" ", 1)[1])
    raise Failed("the Collector says how much is queued: no")


def sampling(programs, bench):
    """The fleet keeps every run that did not complete, whole, and of those that did only the share that it is told."""
    jaeger = Jaeger(programs, bench.folder)
    samplers, ports = [], free_ports(2)
    for number, port in enumerate(ports):
        health, own = free_ports(2)
        settings = {
            "TRACEGATE_JAEGER_ENDPOINT": f"127.0.0.1:{jaeger.otlp}",
            "TRACEGATE_OTEL_DATA": bench.folder / f"sampler-{number}",
            "TRACEGATE_OTEL_HOST": "127.0.0.1",
            "TRACEGATE_OTEL_GRPC_PORT": port,
            "TRACEGATE_OTEL_HEALTH_PORT": health,
            "TRACEGATE_OTEL_METRICS_PORT": own,
            "TRACEGATE_KEEP_COMPLETED": 0,
            "TRACEGATE_DECIDE_AFTER_ROOT": "2s",
        }
        program = programs / "otelcol"
        samplers.append(
            Service(f"sampler-{number}", program, "docs/fleet/collector-sampling.yaml", bench.folder, settings, f"http://127.0.0.1:{health}/")
        )
    front_port, health, own = free_ports(3)
    settings = {
        "TRACEGATE_OTEL_HOST": "127.0.0.1",
        "TRACEGATE_OTEL_GRPC_PORT": front_port,
        "TRACEGATE_OTEL_HEALTH_PORT": health,
        "TRACEGATE_OTEL_METRICS_PORT": own,
        "TRACEGATE_OTEL_DATA": bench.folder / "front",
        "TRACEGATE_SAMPLER_1": f"127.0.0.1:{ports[0]}",
        "TRACEGATE_SAMPLER_2": f"127.0.0.1:{ports[1]}",
    }
    front = Service("front", programs / "otelcol", "docs/fleet/collector-front.yaml", bench.folder, settings, f"http://127.0.0.1:{health}/")
    services = [jaeger, *samplers, front]
    # The runs' own Collector sends on to the fleet instead of Jaeger.
    collector = Collector(programs, bench.folder, f"127.0.0.1:{front_port}")
    try:
        for service in [*services, collector]:
            service.start()
        completed = [bench.demo(collector.endpoint("grpc"), "--fixed") for _ in range(2)]
        failed = [bench.demo(collector.endpoint("grpc")) for _ in range(4)]
        for run in failed:
            arrived(jaeger, run)
        # Decisions are made in the order of arrival: those about the completed runs are older than what has arrived by now.
        for run in completed:
            must("a completed run is left out", not list(jaeger.trace(run.trace)))
        print(f"{len(failed)} failed runs kept, whole; {len(completed)} completed runs left out")
    finally:
        for service in [collector, *reversed(services)]:
            service.stop()


def links(jaeger):
    """docs/jaeger-ui.json reaches the page."""
    status, page = get(f"http://127.0.0.1:{jaeger.http}/search")
    must("Jaeger serves its page", status == 200, page[:300])
    given = json.loads((ROOT / "docs/jaeger-ui.json").read_text())
    found = re.search(r"JAEGER_CONFIG = (\{.*\});", page)
    must("the page has the link patterns", found and json.loads(found[1]) == given, page[:2000])


CHECKS = {check.__name__: check for check in (validate, readback, redaction, outage, sampling)}


def main():
    programs, tracegate, check, *folder = sys.argv[1:]
    # A signal ends what was started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="tracegate-otel.") as temporary:
        place = Path(folder[0] if folder else temporary).resolve()
        place.mkdir(parents=True, exist_ok=True)
        try:
            CHECKS[check](Path(programs).resolve(), Bench(Path(tracegate).resolve(), place))
        except Failed as failed:
            print(f"{check}: {failed}")
            for log in sorted(place.glob("*.log")):
                print(f"-- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-8:]))
            sys.exit(1)
    print(f"{check}: holds")


if __name__ == "__main__":
    main()
