"""Compares spans with the events that they must come from. Uses nothing of ours but the format in docs/events.md.

    compare.py EVENTS SPANS [TRANSPORT]

EVENTS is a run's events.jsonl. SPANS is what receiver.py wrote, or a run's traces.otlp.jsonl. Every pair of a started and a
finished event must be there as exactly one span, with its ids, parent, name and times to the nanosecond, and nothing else
may be there. With TRANSPORT (`http` or `grpc`) every span must have come that way. Exit 0 if so, 1 if not.
"""

import json
import sys
from datetime import datetime, timezone

KINDS = (
    "segment agent.step context.build model.complete permission.review tool.execute checkpoint.save validation.review"
).split()


def nanoseconds(text):
    """Reads an RFC 3339 time in UTC exactly, which datetime alone does not."""
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    whole = datetime.fromisoformat(seconds).replace(tzinfo=timezone.utc)
    return int(whole.timestamp()) * 10**9 + int(fraction.ljust(9, "0"))


def expected(events):
    """Returns trace id, resource and the spans of a log: span id -> (parent, name, start, end, failed)."""
    run = next(event["data"] for event in events if event["type"] == "run.started")
    remote = run.get("remote_parent", {}).get("span_id", "")
    started, spans = {}, {}
    for event in events:
        kind, _, edge = event["type"].rpartition(".")
        if kind not in KINDS:
            continue
        if edge == "started":
            if event["span"] in started:
                raise SystemExit(f"span {event['span']} begins twice in the log")
            started[event["span"]] = event
        elif edge == "finished":
            begin = started.pop(event["span"])
            if begin["seq"] != event["cause"]:
                raise SystemExit(f"event {event['seq']} does not name the event that it ends")
            data = event["data"]
            spans[event["span"]] = {
                # The first segment of a run that joined another program's trace hangs under the span that it was started in.
                "parent": begin.get("parent", remote if kind == "segment" else ""),
                "name": f"invoke_agent {run['agent']['name']}" if kind == "segment" else kind,
                "start": nanoseconds(begin["ts"]),
                # What somebody else ended takes a nanosecond more than up to the last event, so that no span takes no time.
                "end": nanoseconds(data["end_ts"]) + 1 if data.get("healed") else nanoseconds(event["ts"]),
                "begin_seq": begin["seq"],
                "end_seq": event["seq"],
            }
    return run["trace_id"], run["resource"], spans, sorted(started)


def read(path):
    """Reads spans of either format."""
    for line in open(path, encoding="utf-8"):
        record = json.loads(line)
        if "resourceSpans" not in record:
            yield record
            continue
        for resource in record["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    yield {
                        "transport": "file",
                        "resource": texts(resource["resource"]["attributes"]),
                        "scope": scope["scope"]["name"],
                        "traceId": span["traceId"],
                        "spanId": span["spanId"],
                        "parentSpanId": span.get("parentSpanId", ""),
                        "name": span["name"],
                        "start": int(span["startTimeUnixNano"]),
                        "end": int(span["endTimeUnixNano"]),
                        "attributes": texts(span["attributes"]),
                    }


def texts(pairs):
    plain = {}
    for pair in pairs:
        kind, value = next(iter(pair["value"].items()))
        plain[pair["key"]] = int(value) if kind == "intValue" else value
    return plain


def main():
    log, spans, *transport = sys.argv[1:]
    with open(log, encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    trace, resource, wanted, still_open = expected(events)
    wrong = [f"span {span} begins and never ends" for span in still_open]
    seen = set()
    for span in read(spans):
        key = span["spanId"]
        if key in seen:
            wrong.append(f"{key} ({span['name']}) is there twice")
            continue
        seen.add(key)
        if key not in wanted:
            wrong.append(f"{key} ({span['name']}) is in no event")
            continue
        pair = wanted[key]
        rows = [
            ("trace id", trace, span["traceId"]),
            ("parent", pair["parent"], span["parentSpanId"]),
            ("name", pair["name"], span["name"]),
            ("start", pair["start"], span["start"]),
            ("end", pair["end"], span["end"]),
            ("scope", "tracegate", span["scope"]),
            ("begin_seq", pair["begin_seq"], span["attributes"].get("tracegate.event.begin_seq")),
            ("end_seq", pair["end_seq"], span["attributes"].get("tracegate.event.end_seq")),
            ("resource", resource, {name: span["resource"].get(name) for name in resource}),
        ]
        rows += [("transport", way, span["transport"]) for way in transport]
        wrong += [
            f"{key} ({pair['name']}): {what} is {found!r}, not {right!r}" for what, right, found in rows if right != found
        ]
    wrong += [f"{key} ({wanted[key]['name']}) did not arrive" for key in wanted if key not in seen]
    for line in wrong:
        print(line)
    print(f"{len(seen)} spans, {len(wanted)} pairs of events, {len(wrong)} differences")
    sys.exit(1 if wrong or not wanted else 0)


if __name__ == "__main__":
    main()
