"""First causes found in the logs of attempts."""

from data.tables.table import Table, bigint, double, varchar

LOG_VERDICTS = Table(
    "log_verdicts",
    "The first cause found in the log of a failed attempt, and the lines that say something in it "
    "and in logs of completed ones. Derived at a publish that brings new lines.",
    {
        "cluster": varchar("name of the cluster"),
        "attempt_key": varchar("the attempt"),
        "content": varchar("hash of the log's lines"),
        "rules_version": varchar("version of the rules that read it"),
        "cause": varchar("cause, by the taxonomy; unknown where the log names none"),
        "confidence": double("confidence in [0, 1]"),
        "method": varchar("log_rule, log_model or none"),
        "file": varchar("file of the line of the first cause", people="text"),
        "line_no": bigint("that line"),
        "node": varchar("host that wrote it, by the name on the line"),
        "text": varchar("its text", people="text"),
        "evidence": varchar(
            "lines the verdict rests on, a JSON array: line, text", people="nested"
        ),
        "lines": varchar("hashes of its lines that say something, a JSON array"),
        "discounts": varchar(
            "share of such a line's presence in logs of failed attempts that is not chance, a JSON "
            "object by hash; only of lines that logs of completed attempts hold too"
        ),
    },
    key=("cluster", "attempt_key"),
)
