"""Lines of a job's log without what launchers and loggers put before them.

And words in them that nobody says of this job: documents, samples, names and histories.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from analytics.failures.log_classifier.days import DAY
from analytics.patterns import lazily

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL|SEVERE"
_ANSI = lazily(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_LONGEST, _LONGEST_RECORD = 4_000, 200_000
"""Characters of a line, and of a JSON record, that are looked at: half of them at its end, where
an exception follows a bar of progress."""
_MESSAGE_KEYS = ("message", "msg", "log", "text", "event", "error", "exception", "exc_info",
                 "stack_trace", "stack", "traceback", "py_callstack", "exc", "err", "stderr",
                 "detail", "reason", "m")  # fmt: skip
_WITHIN_KEYS = ("message", "description", "reason", "error")
_DEEPEST, _MOST_WITHIN = 5, 12
_LEVEL_KEYS = ("level", "levelname", "severity", "lvl")
_RANK = r"(?:rank|default|local_rank|worker|proc)[ =:_]?\d+"

_DATE = r"(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d(?:[-/]\d{2,4})?)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|\ ?[+-]\d\d:?\d\d|\ UTC)?"
_PREFIX = lazily(
    rf"""
    (?P<rank>\[{_RANK}\]:?\ ?|{_RANK}:\ ?                          # torchrun
      |\ {{0,5}}\d{{1,5}}:\ (?=\D|{_DATE}|{_CLOCK})|\ {{0,5}}\d{{1,5}}:(?=\s*$)      # srun --label
      |\{{[a-z]{{0,6}}\d{{1,5}}\}}\ ?
      |\[\d{{1,5}}(?:,(?:mpirank:)?\d+)?(?:,[\w-]+)?\](?:<std(?:err|out)>)?:?\ ?)  # mpirun
    |\((?:\w[\w.]*\ )?(?:pid|ip)=[^)]*\)\ ?                       # Ray
    |\[?{_DATE}[T ,]\ ?{_CLOCK}(?:(?:\ [A-Z]{{2}}\d+)+(?=\]))?\]?[:,]?\ {{0,2}}  # also SGLang
    |\[[A-Z][a-z]{{2}}\ \d\d,\ {_CLOCK}\]\ |\[NeMo\ (?P<nemo>[IWED])\ [^\]]*\]\ ?
    |\[?{_CLOCK}\]?[: ]\ ?
    |\[?(?:[A-Z][a-z]{{2}}\ )?[A-Z][a-z]{{2}}\ +\d{{1,2}}\           # syslog, dmesg -T
      \d\d:\d\d:\d\d(?:\.\d+)?(?:\ \d{{4}})?\]?:?\ ?
    |\[?1\d{{9}}(?:\.\d+)?\]?:?\ |\[\ *\d+\.\d{{3,6}}\]\ ?         # epoch, seconds since boot
    |\[?(?P<letter>[IWEFD])\d{{4,8}}\ [\d:.]+\ +(?:\d+\ )?[\w./-]+:\d+\]\ ?  # glog
    |(?P<absl>[IWEF])\ [\w./-]+:\d+\]\ ?
    |\[(?P<torch>[IWEF])(?:\d{{4}}\ [\d:.]+)?\ ?[\w./-]+\.(?:cpp|cc|cu|h|hpp|py):\d+\]\ ?
    |(?P<padded>DEBUG\ {{4}}|INFO\ {{5}}|WARNING\ {{2}}|ERROR\ {{4}}|CRITICAL\ )
    |(?P<level>\b(?:{LEVELS})\b)(?::[\w.]+:|\]:?|\s*[:|-])?\s?(?=\D|{_DATE}|{_CLOCK}|$)
    |\(\w+(?:[\ _]\w+)*\)\ (?=(?:{LEVELS})\b)                      # vLLM
    |\[(?P<boxed>{LEVELS}|[A-Z][a-z]+)\]:?\ ?
    |\|\ *(?P<barred>{LEVELS})\ *\|\ *|std(?:err|out)(?::\ ?|\ \|\ |\ [FP]\ )
    |[\w.<>]+:[\w<>]+:\d+\ +-\ |[\w.]+\ -\ (?=(?:{LEVELS})\b)       # loguru, logging
    |\[?[\w./-]+\.(?:py|cpp|cc|cu|c|h|hpp):\d+\]?:?(?:[\w<>]+\])?:?\ (?!in\ )
    |[a-z][a-z0-9.-]*\d[a-z0-9.-]*:\d+:\d+\ \[\d+\]\ ?          # NCCL: host:pid:tid [gpu]
    |\[?[a-z][a-z0-9.-]*\d[a-z0-9-]*\]?:\ ?(?=\D|{_DATE}|{_CLOCK})  # pdsh
    |\[[a-z][\w.-]*\d[\w.-]*\]\ |[a-z][\w.-]*/\d{{1,4}}\           # Flyte, TorchX
    |\[[a-z][\w.@-]{{0,30}}\]:?\ (?=\ *(?:Traceback|\ \ |\[rank|{_DATE}|{_CLOCK}|[IWEF]\d{{4}}[ ]
      |(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Exit)\b))                # a tag
    |[0-9a-f]{{6,}}\ \|\|\ ?                                        # Determined
    |[a-z][\w.-]*\d[\w.-]*\ +\|\ |[-|]\ (?=\S)|\ {{2,8}}\|\   # containers, groups
    |[\w.-]+\ (?:[\w./-]+\[\d+\]|kernel):\ ?
    |[a-z][a-z0-9-]*\d[a-z0-9-]*\ {{1,2}}                        # a pod, without a sign after it
      (?={_DATE}[T\ ]|[IWEF]\d{{4}}\ |Traceback|\ \ File|\ {{4}}|(?:\w+\.)*[A-Z]\w*Error\b)
    |[\w.-]+\[\d+\]:\ ?                                         # process[pid]:
    """,
    re.VERBOSE,
)
_SAYS_WARNING = lazily(r"\S{0,40}\s?\bwarn(?:ing)?\b\s?[:>\]]", re.IGNORECASE)
_LEVEL_GROUPS = ("level", "letter", "torch", "absl", "boxed", "barred", "padded", "nemo")
_MOST_PREFIXES = 8


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or what stands between two carriage returns of it."""

    number: int
    """Line of the log, from 1."""
    text: str
    """Without colours, prefixes and trailing blanks; indentation is kept."""
    shown: str
    """Without colours only: evidence."""
    rank: str | None = None
    """Who wrote it, as the launcher says."""
    level: str | None = None
    """Level that the logger states: one letter, e.g. E."""

    @property
    def mild(self) -> bool:
        """Whether its writer calls it information or a warning."""
        return self.level in ("D", "I", "W")


def cleaned(number: int, raw: str) -> list[Line]:
    """The line as its parts: one, or several where carriage returns or JSON hold more.

    Examples
    --------
    >>> [line.text for line in cleaned(7, "[rank3]: 2026-01-05 10:00:00 ERROR: KeyError: 'a'")]
    ["KeyError: 'a'"]
    """
    if len(raw) > (_LONGEST_RECORD if raw.startswith("{") else _LONGEST):
        raw = f"{raw[: _LONGEST // 2]}\n{raw[-_LONGEST // 2 :]}"
    raw = without_colours(raw)
    parts = [part for part in re.split(r"[\r\n]", raw) if part.strip("\0 \t")] or [""]
    return [line for part in parts for line in _unwrapped(number, part.replace("\0", "").rstrip())]


def without_colours(text: str) -> str:
    """Text without the escape sequences of a terminal."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def _unwrapped(number: int, shown: str) -> list[Line]:
    """A part without its prefixes; the message of a JSON record line by line."""
    text, rank, level = _without_prefixes(shown)
    if text.startswith("{") and text.endswith("}"):
        told = _json_message(text)
        if told is not None:
            message, level = told
            parts = [line[:_LONGEST] for line in message.split("\n") if line.strip()] or [""]
            if len(parts) == 1 and parts[0].startswith("{"):  # a container's record holds it
                return [replace(line, shown=shown) for line in _unwrapped(number, parts[0])]
            inner = (_without_prefixes(line) for line in parts)
            return [
                Line(number, line, shown, rank or its, own or level) for line, its, own in inner
            ]
    return [Line(number, text, shown, rank, level)]


def _without_prefixes(text: str) -> tuple[str, str | None, str | None]:
    """Text, rank and level of a line."""
    rank = level = None
    place, text = 0, text + " "  # an empty line of a program ends in the blank of its prefix
    for _ in range(_MOST_PREFIXES):
        found = _PREFIX.match(text, place)
        if found is None or found.end() == place:
            break
        groups = found.groupdict()
        rank = groups["rank"].strip(" :[]") if groups["rank"] and rank is None else rank
        said = next((groups[name] for name in _LEVEL_GROUPS if groups[name]), None)
        if said and said.strip().upper() in _LEVELS and level != "F":
            level = said[0].upper()
        place = found.end()
    text = text[place:].rstrip()
    if level is None and _SAYS_WARNING.match(text):
        level = "W"
    return text, rank, level


_LEVELS = frozenset(LEVELS.split("|")) | frozenset("IWEFD")


def _json_message(text: str) -> tuple[str, str | None] | None:
    """Message and level of a JSON record; None where it is no such record."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    inner = record.get("message")
    if isinstance(inner, dict):  # torchrun's file of an error
        extra = inner.get("extraInfo")
        record = record | inner | (extra if isinstance(extra, dict) else {})
    if record.keys() >= {"MessageId", "MessageArgs"}:  # Redfish
        record = {"message": record}
    parts = [str(record[key]) for key in _MESSAGE_KEYS if isinstance(record.get(key), str)]
    parts += list(islice(_told_within(record, 0), _MOST_WITHIN))
    if not parts:
        return None
    said = next((str(record[key]) for key in _LEVEL_KEYS if key in record), "").upper()
    return "\n".join(parts), said[0] if said in _LEVELS else None


def _told_within(record: object, depth: int) -> Iterator[str]:
    """Messages in the records that a record holds, such as the events of a health monitor."""
    if isinstance(record, list):
        for entry in record:
            yield from _told_within(entry, depth)
    elif isinstance(record, dict):
        if depth:
            told = {str(key).lower(): value for key, value in record.items()}
            yield from (
                told[key] for key in _WITHIN_KEYS if isinstance(told.get(key), str) and told[key]
            )
            arguments = told.get("messageargs")
            if isinstance(arguments, list):
                yield " ".join(str(argument) for argument in arguments)
        if depth < _DEEPEST:
            for value in record.values():
                yield from _told_within(value, depth + 1)


_HEADER = "Traceback (most recent call last)"
_LONGEST_PREFIX = 80


def without_own_prefixes(lines: Sequence[str]) -> Sequence[str]:
    """Lines without a prefix that no launcher is known by: what stands before a traceback's header.

    Examples
    --------
    >>> without_own_prefixes(["w> 1 | Traceback (most recent call last):", "w> 2 | KeyError: 1"])
    ['Traceback (most recent call last):', 'KeyError: 1']
    """
    headers = [line for line in lines if _HEADER in line]
    prefixes = {_any_number(before) for line in headers if (before := _own_prefix(line))}
    if not prefixes:
        return lines
    pattern = re.compile("|".join(sorted(prefixes, key=len, reverse=True)))
    return [pattern.sub("", line, count=1) if pattern.match(line) else line for line in lines]


def _own_prefix(line: str) -> str:
    """What stands before a traceback's header and before what `cleaned` takes off."""
    before = line[: line.index(_HEADER)]
    if len(before) > _LONGEST_PREFIX or '{"' in before:
        return ""
    cuts = (0, *(found.end() for found in re.finditer(r"[\s|:\]>]+", before)), len(before))
    known = (cut for cut in cuts if cleaned(1, line[cut:])[-1].text.startswith(_HEADER))
    return before[: next(known, 0)]


def _any_number(prefix: str) -> str:
    """A regular expression for a prefix with any other numbers in it."""
    return re.sub(r"\d+", r"\\d+", re.escape(prefix))


_COMMAND = lazily(r"(?:\++|\$) \S")
_SHOWS_A_TEXT = lazily(
    r"(?:\++|\$) (?:cat|head|tail|sed|less|more|nl|bat)\b.*"
    r"(?:\.(?:md|rst|sh|bash|py|ya?ml|toml|cfg|conf|ini|sbatch|slurm)\b|readme|runbook|faq\b)"
)
_HISTORY = lazily(
    r"\b(?:nodes?|hosts?|gpus?|drain\w*|repair\w*|health|hardware|tickets?)\b.*\bhistory\b"
    r"|\bhistory of\b.*\b(?:nodes?|hosts?|gpus?)\b"
    r"|\b(?:last|past|recent|previous|earlier)\s+(?:drains?|repairs?|(?:node|gpu|health) events)\b"
)
_LONGEST_HISTORY = 20
_SAMPLE = lazily(
    r"^\W*(?:\w+\]\s*)?(?:-{3,}|={3,})?\s*"
    r"\b(?:samples?|generations?|rollouts?|completions?|examples?|transcripts?|captured|row \d*"
    r"|ejemplos?|muestras?|beispiele?|exemples?|生成例|サンプル|样本|样例|샘플|예시)(?:\b|(?=[^a-z]))"
    r".{0,30}(?:-{3,}|={3,})"
)
_EARLIER_ATTEMPT = lazily(
    r"^\W*(?:\w+\]\s*)?(?:previous |last |prior )?attempt\b.{0,60}"
    r"\b(?:fail|end|died|crash|exit|abort)\w*.{0,60}$"
)
_TURN = lazily(r"<\|(?:im_start|start_header_id|user|assistant|begin_of_text)\|>|\[inst\]")
_TURN_ENDS = lazily(r"<\|(?:im_end|eot_id|end|endoftext)\|>|\[/inst\]|</s>", re.IGNORECASE)
_RULE = lazily(r"-{3,}|={3,}")
_ENDS_SAMPLE = lazily(
    r"-{3,}|={3,}|^\s*$|\d(?:it/s|s/it)\b|\d%\||\b(?:PASSED|FAILED)\b|^s(?:lurmstepd|run):"
)
_LONGEST_SAMPLE = 60

_RETOLD = lazily(
    r"\b(?:previous|last|prior|earlier) (?:attempt|run|try|job|launch|incarnation)\b.{0,40}"
    r"\b(?:fail|died?|crash|end|exit|abort|kill|stop)"
    r"|^#(?! a fatal error| out of bounds values)"  # a comment
    r"|\bcaptured (?:log|std(?:out|err))\b|\b(?:simulated|injected|mocked)\b"
    r"|^\s*(?:[*•] +\S|- +[\"'`]|(?:q|a|question|answer)\d*\s?[:)] )"  # a list of advice
    r"|^\[\w+ \d\d:\d\d\] \w+: "  # a chat
    r"|\b(?:past|previous|earlier|similar|last)[- ]incidents?\b|--boot[= ]-\d|^\s*- \{\w+:"
    r"|\bpattern: [\"']"
    r"|\bknown issues?\b|\byesterday\b|^squeue\b"
    r"|\b(?:last|previous) (?:week|month|year|night|failure|crash)\b"
    r"|(?<!never )\b(?:fixed|resolved|closed)\)?\W*$"
    r"|^motd\b|(?<!be )\b(?:replaced|reseated|swapped(?! with)|repaired)\b"
    r"|\b(?:received request|generated (?:response|text|sample)|sampled text)\b"
    r"|^\s*<\|?(?:user|assistant|system|human|im_start)\b"
    r"|^\s*(?:\[[^\]]*\]\s*)?(?:user|assistant|human|gpt|bot|reporter|customer"
    r"|prompt|output)\s?[:>] "
    r"|^\s*(?!\w*(?:error|exception)|message|reason|msg|cause|detail)[\w.-]+: '[^']*',?$"
    r"|^\s*(?:docker|podman|mpirun|torchrun|apptainer|singularity|enroot|kubectl|accelerate|deepspeed"
    r"|horovodrun|python\d?) (?:run|exec|launch|apply|create|-|\S+\.py)"  # a command
    r"|(?-i:^\s*[a-z][a-z\d_]*:\s*\[.*\]$)|^\s*\w+_on:"  # a list in a configuration
    r"|\b(?:prompt|question|completion|instruction|response|answer)['\"]?\s*[:=]\s*['\"]"
    r"|::test_\w+.*\b(?:passed|xfail|xpass|skipped)\b"  # pytest -v, and its parameters
    r"""|["'](?:prompt|question|completion|instruction|chosen|rejected|ground_truth)["']\s*:"""
    r"""|["'](?:role|content|messages|conversations)["']\s*:"""
    r"|\[(?:prompt|question|response|answer|completion|instruction|ground_truth|sample)"
    r"(?: ?#?\d+)?\]"
    r"|^(?:prompt|question|sample(?: ?#?\d+)?): "
    r"|^> (?!traceback|  |(?:\w+\.)*\w+error: )\S"
    r"|^(?:reading|opening|tokeni[sz]ing|processing|indexing|loading|packing) \S.*"
    r"\.(?:txt|jsonl|csv|tsv|md)(?: \([^)]*\))?$",
    re.IGNORECASE,
)
_SPEAKS_OF = lazily(
    r"""
    ^\W*(?:\[[\w -]*\]\s*)?(?:
        e\.?g\b|patterns?\b|regex\w*\b|title\b|subject\b|description\b(?!:)|docs?\b|faq\b|examples?\b
        |labels?\b|predict\w*\b|policy\b|commit\b|history\b|ticket\b|assert\b|print\b|echo\b|grep\b
        |if\b|when\b|see\b|no\b|would\b|decoded\b|text\b|codes?\b|(?-i:[A-Z_]{4,}\s*=)|//|[+$]\s(?!\w+:\s)
        |'.*'$)
    |\b(?:load\w*|watch\w*|regist\w*|match\w*|search\w*|look\w*|scan\w*|grep\w*|test\w*|check\w*)
     \ (?:[\w-]+\ ){0,3}(?:for|rules?|patterns?|handlers?|filters?)\b
    |\bhand(?:ler|ling)\ (?:for|of)\b|\bprevious\ (?:boot|job|run)\b
    |\b(?:rules?|patterns?|filters?)\W+loaded\b|\b(?:days?|weeks?|months?)\ ago\b
    |\bnot\ (?:in|part\ of|on)\ (?:this|the|our)\ (?:job|allocation|run)\b|\bother\ (?:job|node)s?\b
    |\bno\ jobs?\ on\ it\b
    |(?:->|=>|:)\s*(?:drain|requeue|replace|open|reboot|contact|resubmit|clean|lower|call|restart)\b
    |(?:->|=>)\s.{0,40}\b(?:ticket|contact|check|drain|replace|report|reduce|increase|see)\b
    |\bdrain\ the\ node\b|\bPASSED\b|\((?:cleared|old|stale|archived)\)|[:=]\s*0\s*$
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ADVICE = lazily(
    r"\b(?:this|it|which) (?:can|may|could|might|usually|often|typically) "
    r"(?:happens?|occurs?)\b.*"
    r"|\b(?:potential|possible|common|likely) (?:root )?(?:causes?|reasons?)\b.*"
    r"|(?<![\w.])(?:is|are|was|were|did|does|do|what|why|how|has|have|can|could)\b[^.:;()]*\?\W*$",
    re.IGNORECASE,
)
_IN_QUOTES = lazily(
    r"""(?<![=:\w])(?<![=:]\ )"[^"]{4,}"(?!\s*:)      # not a key of JSON, nor a value
      |`[^`]{4,}`|(?:(?<=\[)|(?<=,\ ))'[^']{4,}'(?!\s*:)  # not an apostrophe
    """,
    re.VERBOSE,
)
_REPORTS = lazily(
    r"(?:error|exception|caught|raised|failed with|message|reason|because of|critical|warning|alert"
    r"|asserted|severity|sev=\S+|event(?: \S+)?|\bfqx\w+)\W*$",
    re.IGNORECASE,
)
_FILE_NAME = lazily(r"[\w./-]*_[\w./-]*\.(?:txt|jsonl|csv|tsv|md|ya?ml|ipynb)\b")


def shown_texts(lines: Sequence[str], templates: Sequence[str]) -> set[int]:
    """Indexes of lines of a document that a shell printed, of a sample, or of a node's history.

    `templates` are the lines in lower case, without digits. A document ends at the shell's next
    command; where none follows, nothing says where it ended, and its lines count. Of a history
    those lines are old whose day is not the last one of the log.

    Examples
    --------
    >>> log = ["+ cat README.md", "CUDA error: uncorrectable ECC error", "+ python train.py"]
    >>> shown_texts(log, [line.lower() for line in log])
    {1}
    """
    kinds = {kind for kind in set(templates) if _begins(kind)}
    found: set[int] = set()
    if not kinds:
        return found
    last = max(DAY.findall("\n".join(lines)), default="")
    for index, template in enumerate(templates):
        if template in kinds:
            if _EARLIER_ATTEMPT.search(template):
                found.update(_indented(lines, index))
            elif _TURN.search(template):
                found.update(_turn(lines, index))
            elif _SAMPLE.match(template):
                found.update(_sample(lines, index))
            elif _SHOWS_A_TEXT.match(template):
                found.update(_document(lines, index))
            else:
                found.update(_history(lines, index, last))
    return found


@lru_cache(maxsize=100_000)
def _begins(template: str) -> bool:
    if template[:1] in "+$" and _SHOWS_A_TEXT.match(template):
        return True
    if "attempt" in template and _EARLIER_ATTEMPT.search(template):
        return True
    if ("<|" in template or "[inst]" in template) and _TURN.search(template):
        return True
    if ("---" in template or "===" in template) and _SAMPLE.match(template):
        return True
    told = any(word in template for word in ("history", "events", "drain", "repair"))
    return told and _HISTORY.search(template) is not None


def _document(lines: Sequence[str], index: int) -> range:
    """Lines between a command that prints a text and the next command."""
    following = range(index + 1, len(lines))
    end = next((at for at in following if _COMMAND.match(lines[at])), index + 1)
    return range(index + 1, end)


def _indented(lines: Sequence[str], index: int) -> Iterator[int]:
    """A line with those below it that are set in further."""
    yield index
    for at in range(index + 1, min(index + 1 + _LONGEST_HISTORY, len(lines))):
        if lines[at][:1] not in " \t|>":
            return
        yield at


def _turn(lines: Sequence[str], index: int) -> range:
    """Lines of a turn of a conversation, from its mark to the mark that ends it."""
    following = range(index, min(index + 1 + _LONGEST_SAMPLE, len(lines)))
    end = next((at for at in following if _TURN_ENDS.search(lines[at])), index)
    return range(index, end + 1)


def _sample(lines: Sequence[str], index: int) -> range:
    """Lines below the heading of a generated or quoted text.

    It ends at a ruled or empty line, a bar of progress, or a line of the scheduler.
    """
    following = range(index + 1, min(index + 1 + _LONGEST_SAMPLE, len(lines)))
    end = next((at for at in following if _ENDS_SAMPLE.search(lines[at])), index + 1)
    return range(index + 1, end)


def _history(lines: Sequence[str], index: int, last: str) -> Iterator[int]:
    """Lines below a heading that bear a day before the last one that the log names."""
    if DAY.match(lines[index]):
        return
    for at in range(index + 1, min(index + 1 + _LONGEST_HISTORY, len(lines))):
        day = DAY.search(lines[at])
        if day is None or day[0] >= last:
            return
        yield at


def is_spoken_of(text: str) -> bool:
    """Whether a line tells of a fault as rules, documents and programs do that look for it.

    Examples
    --------
    >>> is_spoken_of("loading alert rule 'GPU has fallen off the bus'")
    True
    """
    return _SPEAKS_OF.search(text) is not None


_RAISED = lazily(r"> (?:Traceback|  File |(?:\w+\.)*\w+Error: )")
"""Lines of an exception that a logger sets off with a sign."""


def _is_cited(shown: str) -> bool:
    """Whether a line is set off as somebody else's; the rows of a table end as they begin."""
    return (shown.startswith("> ") and not _RAISED.match(shown)) or (
        shown.startswith("| ") and not shown.endswith("|")
    )


def spoken(line: Line) -> str:
    """What a line says itself: its text without what it quotes, empty where all is quoted.

    What it asks, and what it says may happen, does not count. Words in quotation marks count
    where the line brings them as its message: after `=`, a colon or a word such as "error".
    """
    if _RETOLD.search(line.text) or _is_cited(line.shown):
        return ""
    text = _ADVICE.sub("", line.text)
    if _COMMAND.match(text):
        text = text.partition(" # ")[0].rstrip()
    if '"' in text or "`" in text or "'" in text:
        text = _IN_QUOTES.sub(
            lambda found: found[0] if _REPORTS.search(text[: found.start()]) else '""', text
        )
    return _FILE_NAME.sub("file", text) if "_" in text else text
