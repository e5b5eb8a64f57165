"""The options of the dashboard's server are ones that Streamlit knows."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from streamlit import config

PATH = Path(__file__).resolve().parents[2] / ".streamlit" / "config.toml"
OPTIONS = [
    f"{section}.{name}"
    for section, values in tomllib.loads(PATH.read_text(encoding="utf-8")).items()
    for name, value in values.items()
    if not isinstance(value, dict)
]


@pytest.mark.parametrize("option", OPTIONS)
def test_streamlit_knows_the_option(option: str) -> None:
    assert option in config.get_config_options()
