"""The dashboard's server: Streamlit behind a gate that asks for the link it printed."""

from app.server.run import serve
from app.server.tokens import ServeError

__all__ = ["ServeError", "serve"]
