"""Kernel lines as other programs pass them on: which report an event, which only speak of one."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from data.ingest.reader import Batch, Options, Source
from data.ingest.readers.logs import kernel_log
from data.ingest.readers.logs.kernel_events import kernel_events

if TYPE_CHECKING:
    from pathlib import Path

LOST = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=x, GPU has fallen off the bus."
STOPPED = "NVRM: Xid (PCI:0000:AF:00.0): 45, pid=7, name=x, Ch 00000008"
SWITCH = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Non-fatal, Link 30 LTSSM Fault Up"
AT, ISO = "03-04 05:06:07", "2026-03-04T05:06:07Z"
US = "1772600767000000"

Found = tuple[int, str | None, str | None]
"""Code, time without its year, host."""


def journal(message: str, **changes: str) -> str:
    record = {"MESSAGE": message, "_TRANSPORT": "kernel", "_HOSTNAME": "n1"}
    return json.dumps({**record, "__REALTIME_TIMESTAMP": US, **changes})


def read(folder: Path, text: str) -> Batch:
    path = folder / "log"
    path.write_bytes(text.encode())
    source = Source(path, "log", modified_at=datetime(2026, 6, 1, tzinfo=UTC))
    return kernel_log.read(source, Options(node="-", timezone="UTC"), duckdb.cursor())


def found(batch: Batch) -> list[Found]:
    frame: Any = batch.tables["health_events"]
    rows = frame[frame["check_name"] != "gpu_lost"]
    return [
        (
            int(row.xid if row.check_name == "xid" else row.sxid),
            None if row.observed_at != row.observed_at else f"{row.observed_at:%m-%d %H:%M:%S}",
            None if row.node == "-" else row.node,
        )
        for row in rows.itertuples()
    ]


EVENTS: list[tuple[str, list[Found]]] = [
    # relays: each puts a prefix of its own before; the innermost is the machine's
    (f"<6>Mar  4 05:06:09 relay <4>Mar  4 05:06:07 n1 kernel: kernel: [ 9.1] {LOST}", [(79, AT, "n1")]),
    (f"Mar  4 05:06:09 relay Mar  4 05:06:07 n1 kernel: {LOST}", [(79, AT, "n1")]),
    (f"Mar  4 05:06:07 relay n1 kernel: {LOST}", [(79, AT, "n1")]),
    (f"2026-03-04T05:06:08Z relay Mar  4 07:06:07 n1 kernel: {LOST}", [(79, AT, "n1")]),
    (f"Mar  4 05:06:07 n1 kernel: <4>[  9.100000] {LOST}", [(79, AT, "n1")]),
    (f"184 <4>1 2026-03-04T10:36:07+05:30 n1 kernel - - - [ 9.1] {LOST}", [(79, AT, "n1")]),
    (f"<4>1 - n1 kernel - - - {LOST}", [(79, None, "n1")]),
    (f"Okt 04 05:06:07 n1 kernel: {LOST}", [(79, "10-04 05:06:07", "n1")]),
    (f"Mar  4 05:06:07 n1 kernel: #033[31m[ 9.1] {LOST}#033[0m#015", [(79, AT, "n1")]),
    # netconsole, consoles, service processors
    (f"6.8.0-45-generic,4,1200,9100000,-;{SWITCH}", [(20034, None, None)]),
    (f"2026-03-04T05:06:07Z 10.0.0.9 4,1200,9100000,-;{LOST}", [(79, AT, "10.0.0.9")]),
    (f"ttyS0: [    9.100000] {LOST}\r", [(79, None, None)]),
    (f"n1 login: [    9.100000] {LOST}\r", [(79, None, "n1")]),
    (f"[  OK  ] Started a service.[    9.100000] {LOST}", [(79, None, None)]),
    (f"\x1b[2J\x1b[01;00H[    9.100000] {LOST}\x1b[K\r", [(79, None, None)]),
    (f"loading 10%\rloading 20%\r[    9.100000] {LOST}\r", [(79, None, None)]),
    ("[    9.1] NVRM: Xid (\r\nPCI:0000:3b:00): 79, pid=7\r", [(79, None, None)]),
    # other languages: the C library names months and days in that of the locale
    (f"[Mi Mär  4 05:06:07 2026] {LOST}", [(79, AT, None)]),
    (f"[mer. mars  4 05:06:07 2026] {LOST}", [(79, AT, None)]),
    (f"3月 04 05:06:07 n1 kernel: {LOST}", [(79, AT, "n1")]),
    (f"[水  3月  4 05:06:07 2026] {LOST}", [(79, AT, None)]),
    (f"мар 04 05:06:07 n1 kernel: {LOST}", [(79, AT, "n1")]),
    # structured data whose values hold brackets, a mark of byte order before the message
    (f'<4>1 {ISO} n1 kernel - - [a@1 x="b\\]c"][origin ip="10.0.0.1"] \ufeff{LOST}', [(79, AT, "n1")]),
    (f"[root@n1 ~]# [    9.100000] {LOST}", [(79, None, "n1")]),
    # records that are no JSON: of Fluent Bit's own output, logfmt, tables of a log store
    (f'[0] kmsg.0: [[1772600767.12, {{}}], {{"priority"=>4, "msg"=>"{LOST}"}}]', [(79, AT, None)]),
    (f'[3] kern: [1772600767.12, {{"host"=>"n1", "message"=>"[ 9.1] {LOST}"}}]', [(79, AT, "n1")]),
    (f'time="{ISO}" host=n1 transport=kernel msg="{LOST}"', [(79, AT, "n1")]),
    (f'ts={ISO} hostname=n1 facility=kern severity=err msg="{LOST}"', [(79, AT, "n1")]),
    (f'@timestamp,@message\n2026-03-04 05:06:07.000,"[    9.1] {LOST}"', [(79, AT, None)]),
    (f'"_time","host","_raw"\n"{ISO}","n1","[ 9.1] {LOST}"', [(79, AT, "n1")]),
    # what the journal exports as bytes, behind their number
    ("\n".join((f"__REALTIME_TIMESTAMP={US}", "_TRANSPORT=kernel", "_HOSTNAME=n1", "MESSAGE",
                f"{chr(len(LOST))}{7 * chr(0)}{LOST}", "")), [(79, AT, "n1")]),
    # records over several lines
    (f'{{\n    "@timestamp" => {ISO[:-1]}.000Z,\n       "host" => "n1",\n    "message" => "{LOST}"\n}}',
     [(79, AT, "n1")]),
    ((f"LogRecord #0\nTimestamp: 2026-03-04 05:06:07.2 +0000 UTC\nBody: Str({LOST})\nAttributes:\n"
     "     -> host.name: Str(n1)\n     -> appname: Str(kernel)\n"), [(79, AT, "n1")]),
    # tools and stores: Talos, metalog, Fabric, Airflow, stern, ArcSight, Grafana, Azure, Kibana
    (f"10.5.0.31: kern:     err: [{ISO}]: {LOST}", [(79, AT, "10.5.0.31")]),
    (f"Mar  4 05:06:07 [kernel] [ 9.1] {LOST}", [(79, AT, None)]),
    (f"[gpu-a03] out: [Wed Mar  4 05:06:07 2026] {LOST}", [(79, AT, "gpu-a03")]),
    (f"[{ISO[:-1]}.5+0000] {{subprocess.py:93}} INFO - [Wed Mar  4 05:06:07 2026] {LOST}", [(79, AT, None)]),
    (f'pod-8k fluent-bit [3] host.kmsg: [1772600767.12, {{"msg"=>"{LOST}"}}]', [(79, AT, None)]),
    (f"CEF:0|Unix|Unix||x:3:1|Syslog|3|rt=Mar 04 2026 05:06:07 dvchost=n1 deviceProcessName=kernel msg={LOST}",
     [(79, AT, "n1")]),
    (f'2026-03-04 06:06:07\t{ISO}\t{{"hostname":"n1","transport":"kernel"}}\t{LOST}', [(79, AT, "n1")]),
    (f'"TimeGenerated [UTC]",Computer,SyslogMessage\n"3/4/2026, 5:06:07.5 AM",n1,"{LOST}"', [(79, AT, "n1")]),
    (f'@timestamp,host.hostname,message\n"Mar 4, 2026 @ 05:06:07.551",n1,"{LOST}"', [(79, AT, "n1")]),
    (f'{ISO} {{host="n1"}} {LOST}', [(79, AT, "n1")]),
    (f"CEF:0|Unix|Unix||x:3:1|Syslog|3|dvchost=n1 deviceProcessName=kernel msg={LOST} a|b=c",
     [(79, None, "n1")]),
    # what names a stream or file is no host, and takes none away
    (json.dumps({"host": "n1", "time": ISO, "event": {"source": "stdout", "log": LOST}}), [(79, AT, "n1")]),
    # cut off right behind a text that is whole; arrows and times within a message
    (f'{{"MESSAGE":"{LOST}","_HOSTNAME":"n1"', [(79, None, "n1")]),
    (f'{{"MESSAGE":"{LOST}"', [(79, None, None)]),
    (journal(f"{LOST} => at: {ISO}"), [(79, AT, "n1")]),
    # times at the end of time, or of no time
    (json.dumps({"log": f"Mar  4 05:06:07 n1 kernel: {LOST}", "time": "9999-12-31T23:59:59Z"}),
     [(79, "12-31 23:59:59", "n1")]),
    (json.dumps({"timegenerated": "13/45/2026, 5:06:07 AM", "computer": "n1", "msg": LOST}), [(79, None, "n1")]),
    (f"<1>1 2026-02-30T05:06:07Z relay fwd 8 - - <3>Mar  4 05:06:07 n1 kernel: {LOST}", [(79, AT, "n1")]),
    (f"13月 04 05:06:07 n1 kernel: {LOST}", [(79, None, "n1")]),
    # what begins like such a record and is none
    (f"{{\n[ 9.1] {LOST}\n", [(79, None, None)]),
    (f"LogRecord #0\nBody: Str(x)\nMar  4 05:06:07 n1 kernel: {LOST}\n", [(79, AT, "n1")]),
    # what another host's relay wrote as its message
    (f"<134>1 2026-03-04T05:06:09Z relay fwd 811 - - <3>Mar  4 06:06:07 n1 kernel: {LOST}", [(79, AT, "n1")]),
    (f"Mar  4 05:06:09 hub relay-b: Mar  4 05:06:08 hop relay-a: Mar  4 05:06:07 n1 kernel: {LOST}",
     [(79, AT, "n1")]),
    # clients of stores, tables with semicolons, other spellings, what wikis and mails add
    (f'{ISO} {{host="n1", transport="kernel"}} {LOST}', [(79, AT, "n1")]),
    (f'id;zeit;rechner;text\n7;2026-03-04 06:06:07+01;n1;"{LOST}"', [(79, AT, "n1")]),
    (f"mar  4 05:06:07 n1 kernel: {LOST}".upper(), [(79, AT, "N1")]),
    (f"> Mar  4 05:06:07 n1 kernel: {LOST}", [(79, AT, "n1")]),
    (f"\\[Wed Mar  4 05:06:07 2026\\] {LOST}".replace("(", "\\("), [(79, AT, None)]),
    ((f"I0304 05:06:08.123456       1 log_monitor.go:160] New status generated: &{{Source:kernel-monitor "
     f"Events:[{{Severity:warn Timestamp:2026-03-04 05:06:07.1 +0000 UTC m=+9.1 Reason:XIDError Message:{LOST}}}]"),
     [(79, AT, None)]),
    # one record that keeps the line raw and parsed
    (json.dumps({"raw": f"{ISO} n1 kernel: {LOST}", "parsed": {"host": "n1", "ident": "kernel", "message": LOST}}),
     [(79, AT, "n1")]),
    # a time of which the relay's clock tells the zone
    (json.dumps({"log": f"[Wed Mar  4 07:06:07 2026] {LOST}", "time": f"{ISO[:-2]}9Z"}), [(79, AT, None)]),
    # records within records, of which the innermost says host and time
    (f'{ISO[:-2]}9Z stdout F ' + json.dumps({"ts": ISO, "node": "n1", "msg": f"4,12,9,-;{LOST}"}),
     [(79, AT, "n1")]),
    # cut off: what stands whole before the cut counts, half a name does not
    (f'{{"MESSAGE":"{LOST}","_HOSTNAME":"n1","__REALTIME_TIM', [(79, None, "n1")]),
    (f'{{"MESSAGE":"{LOST}","__REALTIME_TIMESTAMP":"{US}","_HOSTNAME":"n', [(79, AT, None)]),
    # containers, stores, relays that write JSON
    (f"{ISO} stdout F [    9.100000] {LOST}", [(79, AT, None)]),
    (f"{ISO} stdout P [ 9.1] NVRM: Xid (PCI:0000\n{ISO} stdout F :3b:00): 79, pid=7", [(79, AT, None)]),
    (json.dumps({"log": f"\x1b[33m[ 9.1]\x1b[0m {LOST}\r\n", "time": ISO}), [(79, AT, None)]),
    (json.dumps({"log": json.dumps({"ts": ISO, "node": "n1", "msg": SWITCH}), "time": ISO}),
     [(20034, AT, "n1")]),
    (f'2026-03-04 05:06:07.5 +0000 kern.warn: {json.dumps({"host": "n1", "message": LOST})}',
     [(79, AT, "n1")]),
    (json.dumps({"event": {"original": f"<4>Mar  4 05:06:07 n1 kernel: {LOST}"}, "message": LOST,
                 "host": {"name": "n1"}, "@timestamp": ISO}), [(79, AT, "n1")]),
    (json.dumps({"streams": [{"stream": {"host": "n1"}, "values": [[f"{US}000", LOST]]}]}),
     [(79, AT, "n1")]),
    (json.dumps({"resourceLogs": [{
        "resource": {"attributes": [{"key": "host.name", "value": {"stringValue": "n1"}}]},
        "scopeLogs": [{"logRecords": [{"timeUnixNano": f"{US}000", "body": {"stringValue": LOST}}]}],
    }]}), [(79, AT, "n1")]),
    (json.dumps({"timestamp": ISO, "hostname": "n1", "message": LOST})[:-20], [(79, AT, "n1")]),
    (journal(LOST) + journal(SWITCH), [(79, AT, "n1"), (20034, AT, "n1")]),
    (journal(f"{LOST}\n{STOPPED}"), [(79, AT, "n1"), (45, AT, "n1")]),
    (json.dumps(json.loads(journal(LOST)), indent=1).replace('": ', '" : '), [(79, AT, "n1")]),
    ((f"__CURSOR=s=1\n__REALTIME_TIMESTAMP={US}\nMESSAGE={LOST}\n_HOSTNAME=n1\n\n"
     f"__CURSOR=s=2\n__REALTIME_TIMESTAMP={US}\n_TRANSPORT=stdout\nMESSAGE={LOST}\n"),
     [(79, AT, "n1")]),
    (f"Wed 2026-03-04 05:06:07 UTC [s=9d;i=1;b=6]\n    _HOSTNAME=n1\n    MESSAGE={LOST}\n",
     [(79, AT, "n1")]),
    # line ends that got lost, or that are written out
    (f"[    9.100000] {LOST}[    9.200000] {STOPPED}", [(79, None, None), (45, None, None)]),
    (f"4,22,9100000,-;{STOPPED}4,23,9200000,-;{SWITCH}", [(45, None, None), (20034, None, None)]),
    (f"2026-03-04T05:06:07Z {STOPPED}2026-03-04T05:06:08Z {SWITCH}",
     [(45, AT, None), (20034, "03-04 05:06:08", None)]),
    (f"Mar  4 05:06:07 n1 kernel: {LOST}#012Mar  4 05:06:07 n2 kernel: {SWITCH}",
     [(79, AT, "n1"), (20034, AT, "n2")]),
    (f"Mar  4 05:06:07 n1 kernel: {LOST}Mar  4 05:06:08 n1 gpud[7]: saw {LOST}", [(79, AT, "n1")]),
    (f"[    9.1] NVRM: GPU Board Serial Number: 03[    9.2] {LOST}", [(79, None, None)]),
    (f"RM: Xid (PCI:0000:3b:00): 79, pid=7\n[    9.2] {STOPPED}", [(79, None, None), (45, None, None)]),
    # codes
    (f"Feb 29 05:06:07 n1 kernel: {LOST}", [(79, "02-29 05:06:07", "n1")]),
    ("[ 9.1] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 00000, Severity 0, Link 7", [(0, None, None)]),
    (f"[ 9.1] {STOPPED} caused by previous Xid 79", [(45, None, None)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "events"), EVENTS)
def test_an_event_is_found_in_every_form(tmp_path: Path, text: str, events: list[Found]) -> None:
    batch = read(tmp_path, text)
    assert found(batch) == events
    skipped = sum(batch.skipped_by_reason.values())
    assert batch.rows_read == batch.rows_kept + skipped + len(batch.rejected)
    assert [
        event.xid if event.sxid is None else event.sxid
        for event in kernel_events(str(tmp_path / "log"), Options(node="-")).events
    ] == [code for code, _, _ in events]


@pytest.mark.parametrize(
    "before",
    [
        "      3 Mar  4 05:06:07 n1 kernel: ",  # uniq -c, cat -n
        "4 Mar 2026 05:06:07 +0000;n1;kern;warning;kernel;",
        "<Mar  4, 2026 05:06:07 GMT> <n1> <kernel> <warning> ",
        "2026-03-04_05:06:07.90111 n1 kern.warn: ",
        "%2026-03-04T05:06:07Z% n1 | facility=kern | sev=4 | ",
        "| 2026-03-04 05:06:07 | n1 | kernel | ",
        "2026-03-04T06:06:07+01:00 n1 kernel[-]: #warn ",
        "<tr><td>2026-03-04 05:06:07</td><td>n1</td><td>kernel</td><td>",
    ],
)
def test_a_form_that_nobody_described_is_one_of_times_a_host_and_the_kernel(
    tmp_path: Path, before: str
) -> None:
    assert found(read(tmp_path, before + LOST)) == [(79, "03-04 05:06:07", "n1")]


NONE = [
    # words about a kernel, and what stands behind its name
    f"ticket42 kernel {LOST}",
    f"2026-07-01 10:00:00 kernel h100: {LOST}",
    f"2026-07-01 10:00:00 pid1234 kernel {LOST}",
    f"<12>kern n7 {LOST}",
    f"@4fffffffffffffff00000000 n7 n8 {LOST}",
    # a program's own records
    f"INFO pushing {json.dumps({'message': LOST})}",
    f"train.py step12 sample={json.dumps({'text': LOST})}",
    f"the gpu3 kernel said at 2026-03-04 05:06:07 {LOST}",
    f"| 2026-03-04 05:06:07 | n1 | n2 | kernel | {LOST}",
    f"4 Mar 2026 05:06:07;n1;grafana;kernel;{LOST}",
    f"I saw Mar  4 05:06:07 n1 kernel: {LOST}",
    f"Example: [    9.1] {LOST}",
    f'PATTERN = r"NVRM: Xid \\(PCI:(.*)\\): (\\d+)"  # e.g. {LOST}',
    f'Mar  4 05:06:07 n1 kernel: audit: proctitle="grep {LOST}"',
    f"Mar  4 05:06:07 n1 gpud[3]: report:#012{LOST}",
    f"12,33,9100000,-;{LOST}",  # a program wrote into the kernel's log
    f"user  :notice: [    9.1] {LOST}",
    journal(LOST, _TRANSPORT="stdout", SYSLOG_IDENTIFIER="python3"),
    json.dumps({"level": "warn", "logger": "watch", "msg": LOST, "time": ISO}),
    json.dumps({"alert": "xid", "annotations": {"message": LOST}}),
    json.dumps({"log": f"found {LOST}", "time": ISO}),
    "[ 9.1] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Severity 0 Engine instance 30",
    "[ 9.1] NVRM: Xid (PCI:0000:3b:00): ",
    # programs that call themselves the kernel
    journal(LOST, _TRANSPORT="syslog", SYSLOG_IDENTIFIER="kernel", SYSLOG_FACILITY="1"),
    journal(LOST, _TRANSPORT="stdout", SYSLOG_IDENTIFIER="kernel"),
    f"{ISO} n1 root: kernel: {LOST}",
    json.dumps({"short_message": LOST, "_application": "runbook-bot", "host": "n1"}),
    # a program on the host itself quotes what the kernel said
    f"Mar  4 05:06:09 n1 gpud[7]: Mar  4 05:06:07 n1 kernel: {LOST}",
    f"Mar  4 05:06:09 n1.x.org gpud[7]: Mar  4 05:06:07 n1 kernel: {LOST}",
    f"Mar  4 05:06:09 n1 app[7]: {ISO} {json.dumps({'msg': LOST})}",
    f"[{ISO}] {{subprocess.py:93}} INFO - {LOST}",
    f"train2: setting [ 9.1] {LOST}",
    # cut within its number
    "[ 9.1] nvidia-nvswitch2: SXid (PCI:0000:c7:00.0): 20",
    # programs that write logfmt, and the records of klog
    f'time="{ISO}" level=error msg="saw {LOST}"',
    f'time="{ISO}" level=error component=gpu-monitor msg="{LOST}"',
    f"I0304 05:06:07.123456       1 log_watcher_linux.go:100] Got new kernel log: {LOST}",
]


@pytest.mark.parametrize("text", NONE)
def test_words_about_an_event_are_none(tmp_path: Path, text: str) -> None:
    assert found(read(tmp_path, text + "\n[    1.0] usb 1-1: new device\n")) == []


def test_a_message_stands_without_the_frame_around_it(tmp_path: Path) -> None:
    status = "I0304 05:06:08.1 1 log_monitor.go:160] New status generated: &{Source:kernel-monitor Events:["
    text = f"{status}{{Severity:warn Timestamp:{ISO[:10]} 05:06:07 +0000 UTC Message:{LOST}}}] Conditions:[]}}"
    assert read(tmp_path, text).tables["health_events"]["message"].tolist() == [LOST]


def test_29_february_without_a_year_is_the_last_one(tmp_path: Path) -> None:
    frame: Any = read(tmp_path, f"Feb 29 05:06:07 n1 kernel: {LOST}").tables["health_events"]
    assert frame["observed_at"].dt.year.tolist() == [2024]


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        (f"gpu7 | CHANGED | rc=0 >>\n[Wed Mar  4 05:06:07 2026] {LOST}", ["gpu7"]),
        (f"gpu7:\n    [Wed Mar  4 05:06:07 2026] {LOST}", ["gpu7"]),
        (f"[root@gpu7 ~]# dmesg | tail -1\n[ 9.1] {LOST}", ["gpu7"]),
        (f"=== gpu7 ===\n[ 9.1] {LOST}\n=== gpu8 ===\n[ 9.1] {LOST}", ["gpu7", "gpu8"]),
        (f"----------------\ngpu7\n----------------\n[ 9.1] {LOST}", ["gpu7"]),
        (f'ok: [gpu7] => {{\n  "out.stdout_lines": [\n    "[ 9.1] {LOST}"\n  ]\n}}', ["gpu7"]),
    ],
)
def test_the_host_that_a_gatherer_names_above_the_lines(
    tmp_path: Path, text: str, hosts: list[str]
) -> None:
    path = tmp_path / "log"
    path.write_text(text, encoding="utf-8")
    batch = kernel_log.read(
        Source(path, "log", modified_at=datetime(2026, 6, 1, tzinfo=UTC)),
        Options(),
        duckdb.cursor(),
    )
    assert batch.tables["health_events"]["node"].tolist() == hosts
    told = [notice for notice in batch.notices if "the name above their lines" in notice]
    assert len(told) == len(hosts)
    assert set(told) <= set(kernel_events(str(path), Options()).notices)


def test_an_instant_that_no_clock_holds_leaves_the_event_and_its_neighbours(tmp_path: Path) -> None:
    text = f"@4fffffffffffffff00000000 {LOST}\nMar  4 05:06:07 n1 kernel: {LOST}\n"
    assert len(found(read(tmp_path, text))) == 2


@pytest.mark.parametrize(
    ("head", "next_head"),
    [
        ("$ ssh n7 dmesg", "$ ssh -q n8 dmesg"),
        ("$ ssh n7 dmesg", "root@n8:~# cat dmesg.txt"),
        ("hostname: n7", "*** console of n8 ***"),
        ("<ConMan> Console [n7] log opened", "<ConMan> Console [n8] connected"),
    ],
)
def test_a_head_that_is_not_understood_ends_what_the_one_before_named(
    tmp_path: Path, head: str, next_head: str
) -> None:
    text = f"{head}\n[    9.1] {LOST}\n{next_head}\n[    9.2] {LOST}\n"
    (tmp_path / "log").write_text(text)
    source = Source(tmp_path / "log", "log", modified_at=datetime(2026, 6, 1, tzinfo=UTC))
    batch = kernel_log.read(source, Options(), duckdb.cursor())
    assert [row.node for row in batch.tables["health_events"].itertuples()] == ["n7"]
    assert ["no host" in rejected.reason for rejected in batch.rejected] == [True]


def test_a_long_line_of_numbers_is_looked_through_once(tmp_path: Path) -> None:
    begun = time.process_time()
    read(tmp_path, "x y " + "1," * 50_000 + LOST)
    assert time.process_time() - begun < 2.0  # it took 6 s
