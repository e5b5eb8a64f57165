"""Addresses: a file behind a URL, or what a server answers for a stretch of time."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from data.collect.source import Fetched, Input, Window
from data.disk_full import disk_full
from data.errors import SourceError
from data.posting import opener

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from data.collect.source import Asking, Settings

PROMETHEUS_POINTS = 10_000
"""Points of a series in one answer; Prometheus refuses more than 11,000."""
_CHUNK = 1 << 16
_AGENT = {"User-Agent": "faultline", "Accept-Encoding": "identity"}


class Address:
    """What lies behind a URL: `{from}` and `{until}` in it are a stretch of time, in seconds of
    1970; without them it is fetched as a whole.
    """

    of_slurm = False

    def __init__(
        self,
        settings: Settings,
        url: str,
        headers: Mapping[str, str],
        max_bytes: float | None = None,
    ) -> None:
        self.settings, self._url = settings, url
        self._headers, self._max_bytes = headers, max_bytes

    def fetches(self, asking: Asking) -> Iterator[Fetched]:
        """An answer a stretch of time; no file where it is empty."""
        for number, window in enumerate(self._windows(asking)):
            urls = self._urls(window)
            targets = [asking.folder / f"answer-{number}-{place}" for place in range(len(urls))]
            for url, target in zip(urls, targets, strict=True):
                self._get(url, target, self._max_bytes or asking.limits.unpacked_gb * 1e9)
                self._check(url, target)
            inputs = (
                Input(target, url)
                for url, target in zip(urls, targets, strict=True)
                if target.stat().st_size
            )
            yield Fetched(tuple(inputs), window, " ".join(urls))

    def _windows(self, asking: Asking) -> list[Window]:
        """The stretches to ask for."""
        if "{from}" in self._url:
            return self.settings.timing.windows(asking.known, asking.now, asking.since)
        return [Window(asking.known.until_at, asking.now.replace(microsecond=0))]

    def _urls(self, window: Window) -> list[str]:
        """The addresses of one stretch of time."""
        url = self._url.replace("{until}", _seconds(window.until_at))
        return [url.replace("{from}", _seconds(window.from_at)) if window.from_at else url]

    def _check(self, url: str, answer: Path) -> None:
        """Refuses an answer that says that there is none."""

    def _get(self, url: str, target: Path, max_bytes: float) -> None:
        """Writes what lies behind an address to a file.

        Raises
        ------
        SourceError
            Where it cannot be had whole, within the time and the size allowed.
        """
        request = urllib.request.Request(url, headers=_AGENT)
        for name, value in _values(self._headers).items():
            request.add_unredirected_header(name, value)  # another host must not see them
        until = time.monotonic() + self.settings.timeout_s
        try:
            with closing(
                opener(_Redirects()).open(request, timeout=self.settings.timeout_s)
            ) as response:
                self._write(url, response, target, (until, max_bytes))
        except urllib.error.HTTPError as error:
            with closing(error):
                said = error.read(300).decode("utf-8", "replace")
            raise SourceError(f"{url}: answers {error.code} {error.reason}: {said}") from None
        except (OSError, http.client.HTTPException) as error:
            if (full := disk_full(error, target)) is not None:
                raise full from None
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise SourceError(f"{url}: cannot be had ({reason or type(error).__name__})") from None

    def _write(
        self,
        url: str,
        response: http.client.HTTPResponse,
        target: Path,
        most: tuple[float, float],
    ) -> None:
        """Writes an answer; refuses one that is too slow, too large (`most`) or cut off."""
        (until, max_bytes), n_bytes = most, 0
        with target.open("wb") as out:
            while block := response.read1(_CHUNK):
                out.write(block)
                n_bytes += len(block)
                if n_bytes > max_bytes:
                    raise SourceError(
                        f"{url}: holds more than the limit of {max_bytes / 1e6:,.0f} MB"
                    )
                if time.monotonic() > until:
                    raise SourceError(f"{url}: was not there within {self.settings.timeout_s:,} s")
        length = response.headers.get("Content-Length")
        if length is not None and length.isdigit() and n_bytes < int(length):
            raise SourceError(f"{url}: ended after {n_bytes:,} of {int(length):,} bytes")


class Prometheus(Address):
    """Answers of Prometheus' `query_range`, for queries of PromQL."""

    def __init__(
        self,
        settings: Settings,
        url: str,
        headers: Mapping[str, str],
        max_bytes: float | None = None,
        *,
        queries: tuple[str, ...],
        step_s: int,
    ) -> None:
        longest = min(settings.timing.slice_s or 86_400, PROMETHEUS_POINTS * step_s)
        timing = replace(settings.timing, slice_s=longest)
        super().__init__(replace(settings, timing=timing), url, headers, max_bytes)
        self._queries, self._step_s = queries, step_s

    def _windows(self, asking: Asking) -> list[Window]:
        """The stretches to ask for, of at most as many steps as it answers."""
        return self.settings.timing.windows(asking.known, asking.now, asking.since)

    def _urls(self, window: Window) -> list[str]:
        """The address of each query; its steps are whole ones since 1970, so that windows which
        overlap give the same samples.
        """
        if window.from_at is None:
            raise ValueError("Prometheus is asked from a time on")
        place = f"{self._url.rstrip('/')}/api/v1/query_range"
        period = {
            "start": str(int(window.from_at.timestamp()) // self._step_s * self._step_s),
            "end": _seconds(window.until_at),
            "step": str(self._step_s),
        }
        return [
            f"{place}?{urllib.parse.urlencode({'query': query, **period})}"
            for query in self._queries
        ]

    def _check(self, url: str, answer: Path) -> None:
        """Refuses what is no answer of Prometheus; leaves nothing of one without a series."""
        try:
            said: Any = json.loads(answer.read_bytes())
            status, result = said["status"], said.get("data", {}).get("result", [])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise SourceError(f"{url}: is no answer of Prometheus: check the address") from None
        if status != "success":
            raise SourceError(f"{url}: Prometheus says {said.get('error', status)}")
        if not result:
            answer.write_bytes(b"")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects within one origin: another one may be anybody's."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """The next request, with the headers of this one; refuses another origin."""
        if _origin(newurl) != _origin(req.full_url):
            fp.close()  # whoever asked never sees this answer
            raise urllib.error.URLError(
                f"redirects to another origin, {newurl}: not followed; if it is right, state that "
                "address"
            )
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None:
            for name, value in req.unredirected_hdrs.items():
                following.add_unredirected_header(name, value)
        return following


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of an address; a port that is not stated is that of the scheme."""
    parts = urllib.parse.urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, usual if parts.port is None else parts.port


def _values(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with the values that the environment holds under the names given."""
    missing = sorted({name for name in headers.values() if not os.environ.get(name)})
    if missing:
        raise SourceError(f"{missing[0]}: not set in the environment: a header takes its value")
    return {header: os.environ[name] for header, name in headers.items()}


def _seconds(at: datetime) -> str:
    """A time in seconds since 1970."""
    return str(int(at.timestamp()))
