"""The dashboard's server: Streamlit behind a gate that asks for the link it printed."""

from app.server.ports import ServeError
from app.server.run import serve

__all__ = ["ServeError", "serve"]
