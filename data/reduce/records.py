"""Reducing raw records of any kind: what is new or changed is read, and its days are made."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from data.reduce.engines import engine_of
from data.reduce.inputs import partitions
from data.reduce.job_running import make_days_of_jobs
from data.reduce.kinds import JOBS, KINDS
from data.reduce.running import (
    ASIDE,
    Reduced,
    alone,
    clear,
    make_days,
    opened,
    survey_inputs,
    told_inputs,
)

if TYPE_CHECKING:
    from data.reduce.running import Request


def reduce_records(request: Request) -> Reduced:
    """Brings a reduction up to its inputs: what is new or changed is read, all else stays.

    Raises
    ------
    DataError
        Where another process reduces into the folder, or it holds another reduction.
    SourceError
        Where no input can be read, or one that is needed again is no longer given.
    """
    began = time.monotonic()
    given = partitions(request.inputs, request.out, KINDS[request.kind].forms)
    request.out.mkdir(parents=True, exist_ok=True)
    with alone(request.out):
        manifest = opened(request)
        manifest.save(request.out)  # from here on the folder is a reduction, wherever this ends
        result = Reduced(manifest)
        clear(request.out, manifest)
        aside = request.out / f"{ASIDE}{secrets.token_hex(4)}"
        engine = engine_of(aside, manifest, request)
        try:
            survey_inputs(engine, request, given, result)
            make = make_days_of_jobs if request.kind == JOBS else make_days
            make(engine, request, given, result)
            result.notices += engine.told
        finally:
            engine.close()
    result.notices += told_inputs(manifest, request)
    result.seconds = time.monotonic() - began
    return result
