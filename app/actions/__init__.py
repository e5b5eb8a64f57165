"""What a person does to a store: ingest files, build the demo, say a cause. Never cached."""

from app.actions.alerting import tell_alerts
from app.actions.collecting import collect_sources
from app.actions.demo import DemoBuilt, build_demo, load_demo, remove_demo, takes_demo
from app.actions.examining import RunningExamination
from app.actions.ledger import READER_WAIT_S, build_ledger
from app.actions.people import (
    FIELDS,
    OF_KIND,
    STATUSES,
    annotate,
    mute,
    put_off,
    resolve,
    restore_said,
    switch,
    undo,
)
from app.actions.queries import (
    PAGE_LIMITS,
    ask_sql,
    is_saved,
    kept_queries,
    prepare_queries,
    rename_query,
    save_query,
)
from app.actions.records import (
    checked_zone,
    ingest_files,
    known_options,
    presets,
    sources,
    stated_by,
)
from app.actions.undoing import TooOld, forget, roll_back, to_forget
from app.actions.uploads import RunningUpload, Upload, stated
from data.audit import Audit, Entry, login, noted
from data.errors import DataError
from data.ingest import IngestResult, Options
from data.publish import Plan, plan
from data.queries.schema import names_ledger
from data.state import Annotation

__all__ = [
    "FIELDS",
    "OF_KIND",
    "PAGE_LIMITS",
    "READER_WAIT_S",
    "STATUSES",
    "Annotation",
    "Audit",
    "DataError",
    "DemoBuilt",
    "Entry",
    "IngestResult",
    "Options",
    "Plan",
    "RunningExamination",
    "RunningUpload",
    "TooOld",
    "Upload",
    "annotate",
    "ask_sql",
    "build_demo",
    "build_ledger",
    "checked_zone",
    "collect_sources",
    "forget",
    "ingest_files",
    "is_saved",
    "kept_queries",
    "known_options",
    "load_demo",
    "login",
    "mute",
    "names_ledger",
    "noted",
    "plan",
    "prepare_queries",
    "presets",
    "put_off",
    "remove_demo",
    "rename_query",
    "resolve",
    "restore_said",
    "roll_back",
    "save_query",
    "sources",
    "stated",
    "stated_by",
    "switch",
    "takes_demo",
    "tell_alerts",
    "to_forget",
    "undo",
]
