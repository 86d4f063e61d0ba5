"""`/metrics` as Prometheus reads it: parsed by its own client library, compared with what has happened."""

import pathlib
import re
import shutil
import subprocess
import sys

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tandem_client import *

SESSION, CODE = "monday", "ABC123"


def read(**options):
    """The text, and its samples by name and labels."""
    answer = http.get(f"{HUB_URL}/metrics", timeout=PATIENCE, **options)
    check(answer.status_code == 200, answer.status_code, answer.text[:200])
    check(answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", answer.headers)
    families = list(text_string_to_metric_families(answer.text))
    samples = {}
    for family in families:
        check(family.documentation and family.type in ("counter", "gauge", "histogram"), family)
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            check(key not in samples, "twice", key)
            samples[key] = sample.value
    check(len({family.name for family in families}) == len(families), "a family is written twice")
    return answer.text, families, samples


def value(samples, name, **labels):
    return samples[(name, *sorted(labels.items()))]


def total(samples, name):
    return sum(number for key, number in samples.items() if key[0] == name)


def traffic():
    """A quiz with somebody on the screen and somebody away, plain events, a client that is refused, a request that is refused."""
    gateways, channel = Gateways(), f"presence-quiz-{SESSION}"
    _, _, before = read()
    create_session(SESSION, CODE)
    ada = join(CODE, "Ada", device_token=fcm_token("Ada"), device_platform="android")
    join(CODE, "Ben", device_token=fcm_token("Ben"), device_platform="android")
    gateways.fault(fcm_token("Ben"), {"reason": "UNREGISTERED", "status": 404})
    here = Socket()
    here.subscribe(channel, participant=ada)
    here.send("client-app-state", {"state": "foreground"}, channel)
    here.subscribe("news")
    other = Socket()
    other.subscribe("news")
    other.pong()
    for number in range(5):
        backend().trigger("news", "e", {"n": number})
    event = expect(signed("POST", "/events", {"name": "session-started", "channel": channel, "data": '{"n": 1}'}))["event_id"]
    here.event("session-started")
    here.pong()
    other.count("e", 5)
    gateways.pushes(fcm_token("Ben"), 1)
    refused = http.get(f"{HUB_URL}/apps/1/channels", timeout=PATIENCE)

    def settled():
        _, _, samples = read()
        done = value(samples, "tandem_confirmed_total") == 1 and value(samples, "tandem_pushes_ended_total", state="failed") == 1
        return samples if done else None

    after = wait_for(settled, "the receipt and the outcome")
    text, families, _ = read()
    turns = [family for family in families if family.name == "tandem_loop_turn_seconds"][0]
    for loop in {sample.labels["loop"] for sample in turns.samples}:
        buckets = [s.value for s in turns.samples if s.name.endswith("_bucket") and s.labels["loop"] == loop]
        check(buckets == sorted(buckets) and buckets[-1] > 0, buckets)
    for word in (channel, "news", "Ada", fcm_token("Ben"), fcm_token("Ada"), event, "app-secret", CODE):
        check(word not in text, "a name in the metrics", word)
    judged = None
    if promtool := shutil.which("promtool"):
        run = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=PATIENCE)
        judged = [run.returncode, run.stdout + run.stderr]
    finish(
        families=len(families), refused=refused.status_code, promtool=judged,
        connections=total(after, "tandem_connections"), opened=value(after, "tandem_connections_opened_total"),
        subscriptions=value(after, "tandem_subscriptions"), channels=value(after, "tandem_channels"),
        direct=value(after, "tandem_publishes_total", way="direct"), stored=value(after, "tandem_publishes_total", way="stored"),
        deliveries=value(after, "tandem_deliveries_total"), grew=all(
            value(after, name) > value(before, name)
            for name in ("tandem_frames_total", "tandem_writes_total", "tandem_sent_bytes_total", "tandem_received_messages_total",
                         "tandem_store_transactions_total", "process_cpu_seconds_total")),
        joined=value(after, "tandem_frames_total") >= value(after, "tandem_writes_total"),
        measured=[
            value(after, "tandem_publish_write_seconds_count", way=way) for way in ("direct", "stored")],
        event=value(after, "tandem_events_total", policy="critical"),
        decided=[
            value(after, "tandem_decisions_total", policy="critical", reach="live", decision="awaited"),
            value(after, "tandem_decisions_total", policy="critical", reach="absent", decision="pushed")],
        dead=value(after, "tandem_pushes_total", provider="fcm", outcome="dead", reason="UNREGISTERED"),
        lane=[key for key, number in after.items() if key[0] == "tandem_push_lane_state" and number == 1 and ("provider", "fcm") in key][0],
        refusals=value(after, "tandem_http_responses_total", **{"class": "4xx"}),
        process=value(after, "process_resident_memory_bytes") > 1e6 and value(after, "process_open_fds") > 10,
        started=abs(value(after, "process_start_time_seconds") - time.time()) < 600)


def guarded():
    """A token is asked for, also on this machine."""
    token = os.environ["METRICS_TOKEN"]
    statuses = [http.get(f"{HUB_URL}/metrics", headers=headers, timeout=PATIENCE).status_code for headers in (
        {}, {"Authorization": f"Bearer {token}x"}, {"Authorization": f"Bearer {token}"})]
    head = http.head(f"{HUB_URL}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE)
    finish(statuses=statuses, head=[head.status_code, len(head.content), int(head.headers["content-length"]) > 1000])


def documented():
    """`docs/operations.md` says what each metric and each alert is; the rules and the dashboard ask for no other."""
    root = pathlib.Path(__file__).resolve().parents[4]
    page = (root / "docs/operations.md").read_text()
    text, families, samples = read()
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    # This hub is a single node with SQLite, which has no row of PostgreSQL or of other nodes.
    for part in ("Postgres", "Backplane"):
        check(not any(name.startswith(f"tandem_{part.lower()}_") for name in names), "a row of", part)
        source = (root / f"Sources/HubServer/Metrics/MetricsText+{part}.swift").read_text()
        names |= set(re.findall(rf'"(tandem_{part.lower()}_[a-z_]+)"', source))
    rules = (root / "docs/grafana/alerts.yaml").read_text()
    board = json.loads((root / "docs/grafana/tandem.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    table = page[page.index("| Metric |"):page.index("| Alert |")]
    described = set(re.findall(r"`((?:tandem|process)_[a-z0-9_]+)", table))
    found = re.findall(r"\b((?:tandem|process)_[a-z0-9_]+)", "\n".join([rules, *queries]))
    used = {name.removesuffix("_bucket") for name in found}
    alerts = [rule["alert"] for group in yaml.safe_load(rules)["groups"] for rule in group["rules"]]
    rows = re.findall(r"^\| `(Tandem\w+)` \|", page, re.MULTILINE)
    judged = None
    if promtool := shutil.which("promtool"):
        run = subprocess.run(
            [promtool, "check", "rules", root / "docs/grafana/alerts.yaml"], capture_output=True, text=True, timeout=PATIENCE)
        judged = [run.returncode, run.stdout + run.stderr]
    ids = [panel["id"] for panel in board["panels"]]
    finish(
        missing=sorted(names - described), unknown=sorted(described - names), foreign=sorted(used - names), alerts=alerts == rows,
        count=len(alerts), queries=len(queries), ids=len(ids) == len(set(ids)), promtool=judged)


{f.__name__: f for f in (traffic, guarded, documented)}[sys.argv[1]]()
