"""Masks what names people, machines and places in a log, before a line of it leaves the site.

What is masked is known by its form (an address, a path), by its place (behind `user=`, where syslog
writes the host) or by its build: a word of letters and digits is a name, unless it is one of the
words of computing that are listed here. One name has one mask throughout a log.
"""

from __future__ import annotations

import ipaddress
import re

_END = r"""[^\s"'<>|,;:(){}\[\]]*"""
_FORMS = re.compile(
    rf"""
    (?P<kept>\[masked\]
      | \d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?  # a time
        (?:Z|[+-]\d\d:?\d\d)?)?(?!\w)
      | 0x[0-9a-f]+(?!\w) | https?/\d(?:\.\d)?(?!\w)
      | (?:n/a|and/or|i/o|s/it|gres/gpu|net/[a-z]+)(?!\w)
      | (?<![\w/])(?:\d{{1,2}}/\d{{1,2}}/\d{{4}}|\d+/)(?![\w./])
      | (?<!\w)[\d.,]+\ ?[a-z]{{0,6}}/(?:\d+|s|sec|step|sample|it|gpu)(?![\w/])  # a rate
      | (?<!\w)(?:it|tokens?|samples?|steps?)/(?:s|sec|step|gpu)(?![\w/]))
    | (?P<url>[a-z][a-z0-9+.-]{{0,20}}://[^\s"'<>|]+)
    | (?P<mail>[\w.+-]{{1,100}}@[\w.-]+)
    | (?P<path>
        (?<=["'`])(?:~[\w.-]*|\.{{1,2}}|[a-z]:)?[/\\][^"'`\n]*
      | (?<![\w/])(?:~[\w.-]*|\.{{1,2}}|[a-z]:)?/{_END}
      | (?<!\w)(?:[a-z]:\\|\\\\(?=\w)){_END}
      | (?<![\w/])[\w.@+-]{{1,200}}/{_END})
    | (?P<mac>(?<![\w:])[0-9a-f]{{2}}(?:[:-][0-9a-f]{{2}}){{5,19}}(?![\w:]))
    | (?P<ip6>(?<![\w.])(?:[0-9a-f]{{0,4}}:){{2,7}}(?:\d+(?:\.\d+){{3}}|[0-9a-f]{{0,4}})(?![\w:]))
    | (?P<ip4>(?<![\w.])\d{{1,3}}(?:[.-]\d{{1,3}}){{3}}(?![\w-]))
    | (?P<id>(?<!\w)(?:[a-z]{{2,4}}-)?[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}(?!\w)
      | (?<!\w)(?:[0-9a-f]{{16,}}|\d{{13,}})(?!\w))
    | (?P<hosts>(?<!\w)[a-z][\w-]*\[\d+[,-][\d,-]*\][\w.\[\],-]*)
    | (?P<word>[^\W_][\w.+-]*)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_KINDS = {
    "url": "address", "mail": "person", "path": "path", "mac": "address", "ip6": "address",
    "ip4": "address", "id": "id", "hosts": "name", "word": "name",
}  # fmt: skip
"""Group of the pattern -> what its mask says."""
_NAMED = re.compile(
    r"(\b(?:user(?:_?name)?|login|owner|account|acct|author|host(?:_?name)?|node(?:_?name|_?list)?"
    r"|server|job_?name|project|entity|team|bucket|cluster|partition|namespace|pod)[\"']?"
    r"\s{0,3}[=:]\s{0,3}[\"']?|\b(?:for|by|of|as|invalid) user\s{1,3})"
    r"(?!none\b|null\b|true\b|false\b|\[masked\])([^\s\"',;()<>]+)",
    re.IGNORECASE,
)
"""A name behind the word that says what it names."""
_WRITER = re.compile(
    r"^((?:<\d+>)?(?:[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,+Z-]+) )"
    r"(\S+)(?= [\w./()-]+(?:\[\d+\])?:)|^()(\S+?)(?=:\d+:\d+ \[\d+\])"
)
"""The host that wrote a line: of syslog, of NCCL."""
_NUMBERED = (
    "rank|local_rank|global_rank|step|epoch|iter|iteration|layer|stage|thread|stream|device|core|"
    "port|lane|link|nvlink|numa|slot|dimm|bank|errno|error|exit|signal|sig|line|attempt|retry|"
    "version|python|py|cuda|cudnn|cu|nccl|rccl|rocm|torch|gcc|sm|compute|fp|bf|bfloat|float|int|"
    "uint|utf|sha|md|ipv|eth|ib|mlx|bond"
)
_COMPUTING = re.compile(
    rf"(?:{_NUMBERED})[_-]?\d{{1,4}}(?:[._]\d{{1,4}})*(?:_t)?"
    r"|gpu_?\d|(?-i:[IWEF]\d{4})|\d+(?:\.\d+)?e[+-]?\d+"
    r"|v?\d+(?:\.\d+)*(?:[a-z]{1,4}\d?)?"  # versions, numbers with a unit
    r"|[ahbv][1-3]00|l40s?|a10g?|t4|mi\d{3}x?|gb\d00|x86(?:_64)?|[iuf](?:8|16|32|64)|e[45]m[23]"
    r"|(?:urllib3|boto3|h5py)(?:\.\w+)*|lib[a-z_]+\.so[.\d]*"
    r"|s3|k8s|c10d?|p2p|h2d|d2h|d2d|l[12]|conv[123]d",
    re.IGNORECASE,
)
"""Words of letters and digits that name nobody."""
_DOMAIN = re.compile(
    r"(?:com|org|net|edu|gov|mil|io|ai|cloud|local|internal|intranet|lan|corp|localdomain|arpa|"
    r"de|uk|fr|ch|at|nl|be|es|it|pl|se|no|fi|dk|cz|eu|us|ca|jp|cn|kr|in|au|br|ru|tw|sg)",
    re.IGNORECASE,
)
"""How names of hosts end."""


class Masks:
    """The masks of one log."""

    def __init__(self) -> None:
        self._masks: dict[str, str] = {}

    def text(self, text: str) -> str:
        """A line with a mask in the place of each name.

        Examples
        --------
        >>> masks = Masks()
        >>> masks.text("gpu0051: alice@login1 wrote /home/alice/run.py to 10.0.0.7, rank3 failed")
        '<name-1>: <person-2> wrote <path-3> to <address-4>, rank3 failed'
        >>> masks.text("GPU0051: torch.cuda.OutOfMemoryError, user=bob, 79.2GiB at 0x7f3a")
        '<name-1>: torch.cuda.OutOfMemoryError, user=<name-5>, 79.2GiB at 0x7f3a'
        """
        text = _WRITER.sub(self._behind, text.replace("\0", " "))
        return "".join(
            part if part.startswith("\0") else _FORMS.sub(self._form, part)
            for part in re.split("(\0[^\0]*\0)", _NAMED.sub(self._behind, text))
        ).replace("\0", "")

    def _behind(self, found: re.Match[str]) -> str:
        """What stands before a name, and its mask, set off so that it is not masked again."""
        before, name = (part for part in found.groups() if part is not None)
        if name.startswith("\0") or not re.search(r"[^\W\d_]", name):
            return found[0]
        return f"{before}\0{self._mask('name', name)}\0"

    def _form(self, found: re.Match[str]) -> str:
        kind, text = str(found.lastgroup), found[0]
        if kind == "kept" or (kind == "ip6" and not _is_address(text)):
            return text
        if kind == "word":
            name = text.rstrip(".+-")
            if not _is_name(name):
                return text
            return self._mask("name", name) + text[len(name) :]
        return self._mask(_KINDS[kind], text)

    def _mask(self, kind: str, name: str) -> str:
        known = name.casefold()
        return self._masks.setdefault(known, f"<{kind}-{len(self._masks) + 1}>")


def _is_address(text: str) -> bool:
    """Whether a text with colons is an address of IPv6, and no time or bus."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_name(word: str) -> bool:
    """Whether a word is built like the name of a machine or a login."""
    _, dot, ending = word.rpartition(".")
    if dot and _DOMAIN.fullmatch(ending):
        return True
    mixed = re.search(r"\d", word) and re.search(r"[^\W\d_]", word)
    return bool(mixed) and not _COMPUTING.fullmatch(word)
