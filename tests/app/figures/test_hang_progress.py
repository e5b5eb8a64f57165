"""The chart of a hang: groups by rank, what is behind, and who is marked."""

from __future__ import annotations

from analytics.training.hangs.dump import Entry, GroupConfig, RankDump
from analytics.training.hangs.verdict import hang
from app.figures.training import hang_progress

WORLD = (GroupConfig("0", "default_pg", (0, 1, 2, 3)),)


def test_the_rank_at_fault_is_marked_and_unseen_ranks_are_gaps() -> None:
    done = Entry("0", 1, "nccl:all_reduce", "completed", record_id=0)
    waits = Entry("0", 2, "nccl:all_reduce", "started", record_id=1)
    found = hang([RankDump(0, WORLD, entries=(done, waits)), RankDump(1, WORLD, entries=(done,)),
                  RankDump(2, WORLD, entries=(done, waits))])  # fmt: skip
    drawn = hang_progress.figure(found.progress, found.ranks).to_dict()
    heat, marks = drawn["data"]
    assert [list(row) for row in heat["z"]] == [[0, 1, 0, None]]
    assert list(marks["x"]) == ["1", "3"]
    assert drawn["layout"]["xaxis"]["title"]["text"] == "Rank"
    frame = hang_progress.frame(found.progress, found.ranks)
    assert frame["last_enqueued"].tolist()[:3] == [2, 1, 2]
    assert frame["at_fault"].tolist() == [False, True, False, True]
