"""How colours are seen: contrast, colour blindness and distance, each from its paper."""

from __future__ import annotations

import numpy as np

MACHADO = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "grey": [[0.2126, 0.7152, 0.0722]] * 3,
}
"""Machado, Oliveira and Fernandes (2009), doi:10.1109/TVCG.2009.113, severity 1.0, on linear RGB;
grey keeps the luminance alone, as on paper."""
TO_XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]
"""Of linear sRGB, IEC 61966-2-1."""
WHITE = np.array([0.95047, 1.0, 1.08883])
"""D65, two degrees."""


def linear(colour: str) -> np.ndarray:
    """Linear RGB of a colour written as #rrggbb."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2.2, from 1 to 21."""
    dark, light = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (light + 0.05) / (dark + 0.05)


def seen(colour: str, sight: str) -> np.ndarray:
    """CIELAB of a colour as somebody sees it."""
    xyz = np.array(TO_XYZ) @ np.clip(np.array(MACHADO[sight]) @ linear(colour), 0, 1) / WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, other: str, sight: str = "normal") -> float:
    """CIEDE2000 of two colours as somebody sees them."""
    return ciede2000(seen(one, sight), seen(other, sight))


def ciede2000(one: np.ndarray, other: np.ndarray) -> float:
    """CIEDE2000 of two colours in CIELAB, after Sharma, Wu and Dalal (2005), doi:10.1002/col.20070."""
    l1, l2 = float(one[0]), float(other[0])
    mean = (np.hypot(one[1], one[2]) + np.hypot(other[1], other[2])) / 2
    grow = 1 + 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    a1, a2, b1, b2 = one[1] * grow, other[1] * grow, float(one[2]), float(other[2])
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    d_hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    l_mean, c_mean = (l1 + l2) / 2, (c1 + c2) / 2
    h_mean = h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360
    t = 1.0
    for weight, times, shift in ((-0.17, 1, 30), (0.24, 2, 0), (0.32, 3, -6), (-0.20, 4, 63)):
        t += weight * np.cos(np.radians(times * h_mean - shift))
    s_l = 1 + 0.015 * (l_mean - 50) ** 2 / np.sqrt(20 + (l_mean - 50) ** 2)
    s_c, s_h = 1 + 0.045 * c_mean, 1 + 0.015 * c_mean * t
    r_c = 2 * np.sqrt(c_mean**7 / (c_mean**7 + 25.0**7))
    r_t = -np.sin(np.radians(60 * np.exp(-(((h_mean - 275) / 25) ** 2)))) * r_c
    d_l, d_c, d_h = (l2 - l1) / s_l, (c2 - c1) / s_c, d_hue / s_h
    return float(np.sqrt(d_l**2 + d_c**2 + d_h**2 + r_t * d_c * d_h))
