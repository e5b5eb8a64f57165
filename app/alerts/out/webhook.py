"""A webhook: the message as JSON, signed where the receiver shares a key.

Who receives it takes the header `Faultline-Signature: t=SECONDS,v1=HEX`, computes HMAC-SHA256 of
`SECONDS.BODY` (the bytes of the body as they came) with the shared key, compares in constant time,
and refuses what is older than some minutes. `Faultline-Delivery` stays the same when a message is
sent again: one that was seen before is answered with 200 and left.
"""

from __future__ import annotations

import hmac
import json
import os
import time
from typing import TYPE_CHECKING

from app.alerts.out.answered import Answered, told_by_http

if TYPE_CHECKING:
    from data.alerts import Delivery
    from data.site import Site
    from data.site_alerts import Receiver

DELIVERY = "Faultline-Delivery"
SIGNATURE = "Faultline-Signature"


def send(receiver: Receiver, delivery: Delivery, site: Site, *, timeout_s: float) -> Answered:  # noqa: ARG001
    """What the receiver answers; unsigned, nothing is sent where a key is stated."""
    body = json.dumps(dict(delivery.message), sort_keys=True).encode()
    headers = {DELIVERY: delivery.delivery_id}
    if receiver.secret_variable:
        key = os.environ.get(receiver.secret_variable, "")
        if not key:
            told = f"not sent: {receiver.secret_variable} is not in the environment to sign it"
            return Answered(None, told, is_down=True)
        headers[SIGNATURE] = signature(key, body, int(time.time()))
    return told_by_http(receiver.address, body, timeout_s, headers)


def signature(key: str, body: bytes, at: int) -> str:
    """The header that signs a body at a time, in seconds since 1970.

    >>> signature("key", b"{}", 1_700_000_000)[:20]
    't=1700000000,v1=9d71'
    """
    digest = hmac.new(key.encode(), f"{at}.".encode() + body, "sha256").hexdigest()
    return f"t={at},v1={digest}"
