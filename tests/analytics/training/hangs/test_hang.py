"""Dumps written by hand: each shows one thing that real recorders do."""

from __future__ import annotations

import pickle
from dataclasses import replace
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import AnalysisError
from analytics.training.hangs.dump import Entry, GroupConfig, GroupStatus, RankDump
from analytics.training.hangs.stacks import Frame, RankStack, standing
from analytics.training.hangs.verdict import Hang, hang

WORLD = GroupConfig("0", "default_pg", (0, 1, 2, 3))
DONE, WAITS = "completed", "started"


def op(seq: int, state: Any = DONE, name: str = "all_reduce", **said: Any) -> Entry:
    told = {"group": "0", "record_id": seq - 1, "input_sizes": ((8,),), "output_sizes": ((8,),)}
    return Entry(seq=seq, operation=f"nccl:{name}", state=state, **(told | said))


def dump(rank: int, *entries: Entry, groups: tuple[GroupConfig, ...] = (WORLD,),
         **said: Any) -> RankDump:  # fmt: skip
    return RankDump(rank, groups, entries=entries, **said)


def told(found: Hang) -> tuple[str, tuple[int, ...], set[str]]:
    return found.verdict, found.ranks, {each.kind for each in found.candidates}


def test_without_anything_pending_there_is_no_hang() -> None:
    assert hang([dump(rank, op(1)) for rank in range(4)]).verdict == "none"


def test_none_needs_sight_of_all_ranks() -> None:
    found = hang([dump(rank, op(1)) for rank in range(3)])
    assert (found.verdict, found.why) == ("cannot be judged", "ranks without a dump may wait")
    found = hang([dump(0), *(dump(rank, op(1)) for rank in (1, 2, 3))])
    assert (found.verdict, found.why) == ("cannot be judged", "some dumps hold nothing")


def test_dumps_are_needed() -> None:
    with pytest.raises(AnalysisError, match="dumps must be of at least one rank, got none"):
        hang([])


def test_groups_whose_ranks_nobody_states_are_not_judged() -> None:
    loose = GroupConfig("5", "TENSOR_MODEL_PARALLEL_GROUP", None)
    found = hang([dump(0, op(1, WAITS, group="5"), groups=(loose,)), dump(1, groups=(loose,))])
    assert found.verdict == "cannot be judged"
    assert found.progress.unplaced == ("TENSOR_MODEL_PARALLEL_GROUP",)


def test_a_rank_with_an_empty_dump_that_all_wait_for_is_missing() -> None:
    found = hang([dump(2), *(dump(rank, op(1), op(2, WAITS)) for rank in (0, 1, 3))])
    assert told(found) == ("found", (2,), {"never joined"})
    assert found.candidates[0].confidence == "medium"


def test_a_rank_without_a_dump_is_the_one_or_one_of_them() -> None:
    seen = [dump(rank, op(1), op(2, WAITS)) for rank in (0, 1, 3)]
    assert told(hang(seen)) == ("found", (2,), {"no dump"})
    assert hang(seen).candidates[0].confidence == "low"
    one_more = [*seen[:2], dump(3, op(1))]
    assert told(hang(one_more)) == ("ambiguous", (3, 2), {"never joined", "no dump"})


def test_two_that_never_joined_are_ambiguous() -> None:
    found = hang([dump(rank, op(1), *[op(2, WAITS)] * (rank < 2)) for rank in range(4)])
    assert told(found) == ("ambiguous", (2, 3), {"never joined"})


def test_the_majority_tells_who_does_something_else() -> None:
    for said, kind in (
        ({"name": "all_gather"}, "other operation"),
        ({"input_sizes": ((9,),)}, "other shape"),
        ({"input_dtypes": ("Float",)}, "other type"),
    ):
        usual = {"input_dtypes": ("BFloat16",)}
        dumps = [dump(rank, op(1, WAITS, **(usual | (said if rank == 1 else {}))))
                 for rank in range(4)]  # fmt: skip
        assert told(hang(dumps)) == ("found", (1,), {kind})


def test_two_orders_of_one_group_are_told_as_such() -> None:
    dumps = [
        dump(rank, *(op(seq, WAITS if seq == 1 else "scheduled", name)
                     for seq, name in enumerate(names, 1)))
        for rank, names in enumerate([("all_reduce", "broadcast")] * 3
                                     + [("broadcast", "all_reduce")])
    ]  # fmt: skip
    assert told(hang(dumps)) == ("found", (3,), {"wrong order"})


def test_a_pair_that_differs_is_ambiguous_unless_other_groups_tell() -> None:
    def pair(ranks: tuple[int, int]) -> tuple[GroupConfig, ...]:
        return (GroupConfig("7", "TENSOR_MODEL_PARALLEL_GROUP", ranks),)

    first = [dump(0, op(1, WAITS, group="7"), groups=pair((0, 1))),
             dump(1, op(1, WAITS, "broadcast", group="7"), groups=pair((0, 1)))]  # fmt: skip
    assert told(hang(first)) == ("ambiguous", (0, 1), {"other operation"})
    others = [dump(rank, op(1, group="7"), groups=pair((2, 3))) for rank in (2, 3)]
    found = hang([*first, *others])
    assert told(found) == ("found", (1,), {"other operation"})
    assert found.candidates[0].confidence == "medium"


@pytest.mark.parametrize(
    ("name", "free"),
    [("all_to_all", "input_sizes"), ("scatter", "input_sizes"), ("gather", "output_sizes")],
)
def test_sizes_that_are_left_to_each_rank_do_not_differ(name: str, free: str) -> None:
    dumps = [dump(rank, op(1, WAITS, name, **{free: ((rank + 1,),)})) for rank in range(4)]
    assert told(hang(dumps)) == ("ambiguous", (0, 1, 2, 3), {"not finished"})


def test_sizes_that_differed_before_and_ended_do_not_count() -> None:
    def uneven(rank: int, *entries: Entry) -> RankDump:
        return dump(rank, *(replace(one, input_sizes=((rank + 1,),)) for one in entries))

    dumps = [uneven(0, op(1)), *(uneven(rank, op(1), op(2, WAITS)) for rank in (1, 2, 3))]
    assert told(hang(dumps)) == ("found", (0,), {"never joined"})


def test_a_ring_that_lost_the_operation_is_read_by_its_numbers() -> None:
    def ahead(rank: int) -> RankDump:
        late = [op(seq, "scheduled") for seq in range(100, 104)]
        return dump(rank, *late, status={"0": GroupStatus(103, 95, 94)})

    last = dump(3, *(op(seq) for seq in range(90, 95)), status={"0": GroupStatus(94, 94, 94)})
    found = hang([*(ahead(rank) for rank in range(3)), last])
    assert told(found) == ("found", (3,), {"never joined"})
    assert (found.candidates[0].step.seq, found.wrapped) == (95, (0, 1, 2, 3))


def test_numbers_of_a_group_with_sends_are_not_those_of_its_collectives() -> None:
    sent = op(9, name="send 0->1", p2p=True)
    dumps = [dump(rank, op(1), sent, status={"0": GroupStatus(9, 9, 8)}) for rank in range(4)]
    assert hang(dumps).verdict == "none"


def test_a_gpu_that_did_not_begin_what_others_began_is_found() -> None:
    dumps = [dump(rank, op(1, started_ns=1), op(2, "scheduled" if rank == 2 else WAITS))
             for rank in range(4)]  # fmt: skip
    assert told(hang(dumps)) == ("found", (2,), {"not started"})


def test_where_starts_are_not_recorded_all_that_enqueued_joined() -> None:
    dumps = [dump(rank, op(1), op(2, "scheduled")) for rank in range(4)]
    assert told(hang(dumps)) == ("ambiguous", (0, 1, 2, 3), {"not finished"})


def test_a_send_waits_for_its_receive_and_leads_to_the_rank_that_left() -> None:
    pipe = GroupConfig("4", "PIPELINE_MODEL_PARALLEL_GROUP", (0, 4, 8))

    def at(rank: int, *entries: Entry) -> RankDump:
        return dump(rank, *entries, groups=(pipe,))

    wait = {"group": "4", "p2p": True}
    found = hang([
        at(0, op(1, WAITS, "recv 0<-1", **wait)),
        at(4, op(1, WAITS, "recv 1<-2", **wait)),
        at(8),
    ])  # fmt: skip
    assert told(found) == ("found", (8,), {"partner missing"})
    assert found.candidates[0].step.ends == (8, 4)
    assert found.candidates[0].n_waiting == 2


def test_members_of_a_batch_end_with_its_last_entry() -> None:
    pipe = GroupConfig("4", "PIPE", (0, 1))
    batch = {"group": "4", "p2p": True}

    def batched(rank: int, seq: int, state: Any) -> tuple[Entry, ...]:
        sign = "->" if rank == 0 else "<-"
        name = f"{'send' if rank == 0 else 'recv'} {rank}{sign}{1 - rank}"
        return (op(seq, "scheduled", name, **batch), op(seq, state, "coalesced", **batch))

    ended = [dump(rank, *batched(rank, 1, DONE), groups=(pipe,)) for rank in (0, 1)]
    assert hang(ended).verdict == "none"
    stuck = [replace(ended[0], entries=ended[0].entries + batched(0, 2, WAITS)), ended[1]]
    assert told(hang(stuck)) == ("found", (1,), {"partner missing"})


def test_a_circle_is_resolved_by_the_order_of_the_others() -> None:
    def pair(first: int) -> GroupConfig:
        return GroupConfig("1", "TENSOR_MODEL_PARALLEL_GROUP", (first, first + 1))

    inner = {"group": "1"}
    dumps = [
        dump(0, op(1, WAITS), groups=(WORLD, pair(0))),
        dump(1, op(1, WAITS, **inner), groups=(WORLD, pair(0))),
        *(dump(rank, op(1, **inner), op(1, WAITS, record_id=1), groups=(WORLD, pair(2)))
          for rank in (2, 3)),
    ]  # fmt: skip
    assert told(hang(dumps)) == ("found", (0,), {"wrong order"})
    assert told(hang(dumps[:2]))[0] == "ambiguous"


LOOSE = GroupConfig("0", "default_pg", None)
"""The group of all ranks as a dump without its configuration has it."""


def test_one_dump_that_states_no_ranks_waits_for_ranks_that_are_not_known() -> None:
    found = hang([dump(3, op(5), op(6, WAITS), groups=(LOOSE,))])
    assert told(found) == ("cannot be judged", (), set())
    assert (found.waiting, [wait.why for wait in found.waits]) == ((3,), ["not known"])
    assert found.why == "no dump states which ranks the job has"


def test_ranks_that_nobody_states_are_not_all_ranks() -> None:
    ended = [dump(rank, op(1), groups=(LOOSE,)) for rank in range(3)]
    assert told(hang(ended)) == ("cannot be judged", (), set())
    waits = [dump(rank, op(1), op(2, WAITS), groups=(LOOSE,)) for rank in range(2)]
    assert told(hang(waits)) == ("cannot be judged", (), set())
    found = hang([*waits, ended[2]])
    assert told(found) == ("found", (2,), {"never joined"})
    assert found.candidates[0].confidence == "medium"
    stated = [*ended, dump(3, op(1))]
    assert hang(stated).verdict == "none"


def test_operations_that_could_not_be_read_may_wait() -> None:
    unread = (replace(WORLD, n_unread=1),)
    found = hang([dump(rank, op(1), groups=unread) for rank in range(4)])
    assert (found.verdict, found.why) == (
        "cannot be judged", "some operations could not be read",
    )  # fmt: skip
    late = dump(3, op(1), groups=unread)
    found = hang([*(dump(rank, op(1), op(2, WAITS)) for rank in range(3)), late])
    assert told(found) == ("found", (3,), {"never joined"})
    assert found.candidates[0].confidence == "low"


@pytest.mark.parametrize("name", ["coalesced", "send", "recv 9->8"])
def test_a_send_that_does_not_name_its_ranks_may_wait(name: str) -> None:
    def last(state: Any) -> Hang:
        return hang([dump(rank, op(1), op(1, state, name, p2p=True)) for rank in range(4)])

    found = last(WAITS)
    assert (found.verdict, found.waiting) == ("cannot be judged", (0, 1, 2, 3))
    assert found.why == "some operations that did not end do not name their ranks"
    assert last(DONE).verdict == "none"


def test_a_rank_that_waits_for_a_rank_that_is_not_known_is_hardly_at_fault() -> None:
    waits = [dump(rank, op(1), op(2, WAITS)) for rank in range(3)]
    found = hang([*waits, dump(3, op(1), op(1, WAITS, "send", p2p=True))])
    assert told(found) == ("found", (3,), {"never joined"})
    assert found.candidates[0].confidence == "low"


def test_rings_that_hold_nothing_show_no_end() -> None:
    def ring(rank: int, number: int) -> RankDump:
        return dump(rank, status={"0": GroupStatus(number, number, number)})

    assert hang([ring(rank, -1) for rank in range(4)]).verdict == "cannot be judged"
    assert hang([ring(rank, 6) for rank in range(4)]).verdict == "none"
    found = hang([ring(3, -1), *(dump(rank, op(1, WAITS)) for rank in range(3))])
    assert told(found) == ("found", (3,), {"never joined"})


def test_one_dump_of_a_group_of_20_000_ranks_is_judged_at_once() -> None:
    world = (GroupConfig("0", "default_pg", tuple(range(20_000))),)
    began = process_time()
    found = hang([dump(7, op(1), op(2, WAITS), groups=world)])
    assert (found.verdict, len(found.candidates)) == ("ambiguous", 19_999)
    assert {each.n_waiting for each in found.candidates} == {1}
    assert process_time() - began < 5  # as the square of the ranks it would be a hundred


def test_groups_of_one_rank_say_nothing() -> None:
    own = GroupConfig("3", "DATA_PARALLEL_GROUP", (0,))
    alone = dump(0, op(1), op(1, WAITS, group="3"), groups=(WORLD, own))
    assert hang([alone, *(dump(rank, op(1)) for rank in (1, 2, 3))]).verdict == "none"


def test_a_version_without_descriptions_joins_one_with_them() -> None:
    bare = (GroupConfig("0", "", (0, 1, 2, 3)),)
    dumps = [dump(rank, op(1), *[op(2, WAITS)] * (rank != 1),
                  groups=bare if rank % 2 else (WORLD,)) for rank in range(4)]  # fmt: skip
    assert told(hang(dumps)) == ("found", (1,), {"never joined"})


@given(
    order=st.permutations(range(4)),
    names=st.lists(st.integers(0, 99), min_size=4, max_size=4),
    skew=st.lists(st.integers(-(10**15), 10**15), min_size=4, max_size=4),
)
def test_order_of_files_names_of_groups_and_clocks_do_not_matter(
    order: list[int], names: list[int], skew: list[int]
) -> None:
    dumps = []
    for rank in order:
        name = str(names[rank])
        entries = (op(1, group=name, created_ns=skew[rank]),)
        if rank != 2:
            entries += (op(2, WAITS, group=name, created_ns=skew[rank] + 5),)
        dumps.append(dump(rank, *entries, groups=(replace(WORLD, name=name),)))
    assert told(hang(dumps)) == ("found", (2,), {"never joined"})


def test_most_stacks_stand_in_one_function() -> None:
    wait, load = Frame("all_reduce", "c10d.py"), Frame("next", "loader.py")
    stacks = [RankStack(rank, (load if rank == 3 else wait,)) for rank in range(5)]
    found = standing(stacks)
    assert (found.dominant, found.n_dominant, found.outliers) == ("all_reduce (c10d.py)", 4, (3,))
    assert standing(stacks[2:4]).dominant is None
    with pytest.raises(AnalysisError, match="stacks must hold a frame, got none"):
        standing([RankStack(0, ())])


def test_what_was_judged_can_be_kept_and_judged_again() -> None:
    found = hang([dump(rank, op(1), *[op(2, WAITS)] * (rank != 2)) for rank in range(4)])
    kept = pickle.loads(pickle.dumps(found))
    assert told(kept) == told(found)
    assert told(hang(kept.progress.dumps.values())) == told(found)
