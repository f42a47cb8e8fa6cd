"""An OTLP receiver that is not ours: HTTP and gRPC, decoded with the official protobuf classes.

    receiver.py SPANS PORTS

listens on two free ports of 127.0.0.1, says which in the JSON file PORTS once it can be reached, and appends every span
that arrives to SPANS, one JSON object a line, before it acknowledges. Ends at SIGTERM, or after ten minutes at the latest.
"""

import gzip
import json
import os
import signal
import sys
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as rpc

LONGEST_LIFE = 600
KINDS = {1: "internal", 3: "client"}


def value(any_value):
    """Returns an attribute's value; only the types that a span may hold are known."""
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(item) for item in any_value.array_value.values]
    if kind not in ("string_value", "int_value", "double_value", "bool_value"):
        raise ValueError(f"an attribute is a {kind}")
    return getattr(any_value, kind)


def attributes(pairs):
    found = {pair.key: value(pair.value) for pair in pairs}
    if len(found) != len(pairs):
        raise ValueError("an attribute stands there twice")
    return found


def records(request, transport):
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "transport": transport,
                    "resource": attributes(resource.resource.attributes),
                    "scope": scope.scope.name,
                    "traceId": span.trace_id.hex(),
                    "spanId": span.span_id.hex(),
                    "parentSpanId": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": KINDS.get(span.kind, str(span.kind)),
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "error": span.status.code == 2,
                    "attributes": attributes(span.attributes),
                }


class Sink:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")
        self.lock = threading.Lock()

    def take(self, request, transport):
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records(request, transport)]
        with self.lock:
            self.file.writelines(lines)
            self.file.flush()
        return service.ExportTraceServiceResponse()


def http_server(sink):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            status, answer = 200, b""
            if self.path != "/v1/traces" or self.headers.get("content-type") != "application/x-protobuf":
                status = 404
            else:
                try:
                    answer = sink.take(service.ExportTraceServiceRequest.FromString(body), "http").SerializeToString()
                except Exception as error:  # noqa: BLE001 - whatever it is, the sender must not take it for a success
                    print(f"receiver: {error}", file=sys.stderr)
                    status = 400
            self.send_response(status)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def grpc_server(sink):
    class Traces(rpc.TraceServiceServicer):
        def Export(self, request, context):
            return sink.take(request, "grpc")

    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    rpc.add_TraceServiceServicer_to_server(Traces(), server)
    return server, server.add_insecure_port("127.0.0.1:0")


def main():
    spans, ports = sys.argv[1:]
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    sink = Sink(spans)
    http = http_server(sink)
    traces, grpc_port = grpc_server(sink)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    traces.start()
    with open(f"{ports}.new", "w", encoding="utf-8") as file:
        json.dump({"http": http.server_port, "grpc": grpc_port}, file)
    os.rename(f"{ports}.new", ports)
    done.wait(LONGEST_LIFE)
    traces.stop(1).wait()
    http.shutdown()


if __name__ == "__main__":
    main()
