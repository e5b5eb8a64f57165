"""The dashboard's server: Streamlit behind a gate that asks for the link it printed."""

from app.server.run import ServeError, serve

__all__ = ["ServeError", "serve"]
