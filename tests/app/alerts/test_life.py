from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.alerts import life
from app.alerts.life import Said, Standing, state_of, things
from app.alerts.rule import Episode, Found, Rule
from data.alerts import Alert

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RULES = {
    name: Rule(name, name, "means", "to do", severity, lambda ask, watch: Found())
    for name, severity in (("crash", "critical"), ("drift", "warning"), ("late", "warning"))
}
NODE = "action:node-0123456789ab"


def standing(rule: str = "drift", target: str = NODE, **more: object) -> Standing:
    told = {"since_at": NOW - 3 * HOUR, "raised_at": NOW - HOUR, "ended_at": None} | more
    return Standing(
        RULES[rule], "a", Episode(target, sentence=f"{rule} of it", page="node", **told)
    )


def said(*words: tuple[str, str, str, datetime]) -> Said:
    rows = [
        (str(n), target, "kim", made_at.isoformat(timespec="seconds"), field, value)
        for n, (target, field, value, made_at) in enumerate(words)
    ]
    return Said.of(rows)


def evaluated(
    found: list[Standing], held: list[Alert], words: Said | None = None, at: datetime = NOW
):
    return life.evaluated(things(found), held, words or said(), at)


def test_one_thing_is_one_alert_however_many_rules_see_it_and_the_gravest_speaks() -> None:
    (alert,) = evaluated([standing("drift"), standing("crash")], [])
    assert alert.rules == ("crash", "drift")
    assert (alert.severity, alert.sentence) == ("critical", "crash of it")


def test_what_belongs_to_one_incident_is_one_alert() -> None:
    found = [
        standing("crash", "action:job-1", incident="i1"),
        standing("drift", NODE, incident="i1"),
    ]
    (alert,) = evaluated(found, [])
    assert alert.target == "incident:i1"


def test_a_rule_that_comes_later_joins_without_a_second_alert() -> None:
    (alert,) = evaluated([standing("drift")], [])
    (joined,) = evaluated([standing("drift"), standing("crash")], [alert], at=NOW + HOUR)
    assert (joined.alert_id, joined.rules) == (alert.alert_id, ("drift", "crash"))
    assert joined.severity == "critical"
    assert joined.opened_at == alert.opened_at


def test_it_is_resolved_when_its_evidence_is_gone_and_nothing_is_said_while_it_stays() -> None:
    (alert,) = evaluated([standing()], [])
    assert evaluated([standing()], [alert], at=NOW + HOUR) == []
    (gone,) = evaluated([], [alert], at=NOW + HOUR)
    assert (gone.alert_id, gone.resolved_by) == (alert.alert_id, None)
    assert state_of(gone, said(), NOW + HOUR) == "resolved"


def test_an_episode_that_came_and_went_between_two_evaluations_is_told_and_resolved_by_the_next() -> (
    None
):
    passed = standing(ended_at=NOW - HOUR / 2)
    (alert,) = evaluated([passed], [])
    assert alert.resolved_at is None
    (over,) = evaluated([passed], [alert], at=NOW + HOUR)
    assert over.resolved_at is not None
    assert evaluated([passed], [over], at=NOW + HOUR) == []


def test_evidence_that_comes_back_is_told_anew_since_its_end_was_told() -> None:
    (alert,) = evaluated([standing()], [])
    (gone,) = evaluated([], [alert], at=NOW + HOUR)
    (back,) = evaluated([standing()], [gone], at=NOW + 2 * HOUR)  # records that came late
    assert back.alert_id != alert.alert_id


def test_what_nobody_can_see_any_more_is_not_gone_unless_a_person_says_so() -> None:
    (alert,) = evaluated([standing()], [])
    blind = {("drift", "a")}
    assert life.evaluated({}, [alert], said(), NOW + HOUR, blind) == []
    word = said((NODE, "status", "resolved", NOW + HOUR))
    (done,) = life.evaluated({}, [alert], word, NOW + 2 * HOUR, blind)
    assert done.resolved_by == "kim"


def test_what_a_person_resolves_stays_resolved_while_the_same_evidence_stands_and_an_undo_reopens_it() -> (
    None
):
    (alert,) = evaluated([standing()], [])
    word = said((NODE, "status", "resolved", NOW + HOUR))
    (done,) = evaluated([standing()], [alert], word, NOW + HOUR)
    assert (done.resolved_by, done.resolved_at) == ("kim", "2026-05-04T13:00:00+00:00")
    assert evaluated([standing()], [done], word, NOW + 2 * HOUR) == []
    (open_again,) = evaluated([standing()], [done], said(), NOW + 3 * HOUR)
    assert open_again.alert_id != alert.alert_id, "whoever was told of its end must hear of it"
    assert open_again.resolved_at is None


def test_what_a_person_says_of_it_counts_before_the_rules_are_asked_again() -> None:
    (alert,) = evaluated([standing()], [])
    assert state_of(alert, said((NODE, "status", "resolved", NOW)), NOW) == "resolved"


def test_an_owner_who_is_known_later_joins_and_a_rule_that_sees_it_no_more_leaves() -> None:
    (alert,) = evaluated([standing("drift"), standing("late")], [])
    (after,) = evaluated([standing("crash", owner="ann"), standing("late")], [alert], at=NOW + HOUR)
    assert (after.owner, after.rules) == ("ann", ("late", "crash"))


def test_a_rule_that_cannot_look_holds_open_what_it_saw_and_nothing_else() -> None:
    (alert,) = evaluated([standing("drift")], [])
    assert life.evaluated({}, [alert], said(), NOW + HOUR, {("drift", "a")}) == []
    (over,) = life.evaluated({}, [alert], said(), NOW + HOUR, {("late", "a")})
    assert over.resolved_at is not None


def test_of_two_alerts_whose_incidents_became_one_the_first_goes_on() -> None:
    (first,) = evaluated([standing("crash", incident="i1")], [])
    (second,) = evaluated([standing("late", incident="i2")], [], at=NOW + HOUR)
    held = [second, *life.renamed([first], {"incident:i1": "incident:i2"})]
    after = {
        a.alert_id: a
        for a in evaluated([standing("crash", incident="i2")], held, at=NOW + 2 * HOUR)
    }
    assert after[second.alert_id].resolved_at is not None
    assert first.alert_id not in after or after[first.alert_id].resolved_at is None


def test_the_hours_until_an_escalation_count_from_the_end_of_a_mute() -> None:
    (alert,) = evaluated([standing()], [])
    muted = said((NODE, "snoozed_until", (NOW + 5 * HOUR).isoformat(timespec="seconds"), NOW))
    assert life.escalated([alert], muted, NOW + 6 * HOUR, after_hours=4) == []
    assert len(life.escalated([alert], muted, NOW + 9 * HOUR, after_hours=4)) == 1


def test_an_acknowledgement_of_the_last_episode_silences_no_new_one_whatever_its_estimated_begin() -> (
    None
):
    (alert,) = evaluated([standing()], [])
    word = said((NODE, "status", "acknowledged", NOW))
    (gone,) = evaluated([], [alert], word, NOW + HOUR)
    (anew,) = evaluated([standing(raised_at=NOW + 2 * HOUR)], [gone], word, NOW + 2 * HOUR)
    assert state_of(anew, word, NOW + 2 * HOUR) == "open"


def test_a_resolved_alert_stays_as_it_was_told_while_its_figures_change() -> None:
    (alert,) = evaluated([standing("drift")], [])
    word = said((NODE, "status", "resolved", NOW + HOUR))
    (done,) = evaluated([standing("drift")], [alert], word, NOW + HOUR)
    assert evaluated([standing("late")], [done], word, NOW + 2 * HOUR) == []


def test_acknowledging_an_incident_acknowledges_its_alert_even_where_it_was_said_before() -> None:
    (alert,) = evaluated([standing("crash", incident="i1")], [])
    before = said(("incident:i1", "status", "acknowledged", NOW - 9 * HOUR))
    assert state_of(alert, before, NOW) == "acknowledged"


def test_what_was_acknowledged_last_spring_silences_no_new_episode() -> None:
    (alert,) = evaluated([standing()], [])
    assert state_of(alert, said((NODE, "status", "acknowledged", NOW - 99 * HOUR)), NOW) == "open"
    assert state_of(alert, said((NODE, "status", "acknowledged", NOW)), NOW) == "acknowledged"


def test_a_mute_of_the_thing_or_of_all_its_rules_holds_until_its_time() -> None:
    (alert,) = evaluated([standing("drift"), standing("crash")], [])
    until = (NOW + HOUR).isoformat()
    one = said(("rule:drift", "snoozed_until", until, NOW))
    both = said(
        ("rule:drift", "snoozed_until", until, NOW), ("rule:crash", "snoozed_until", until, NOW)
    )
    thing = said((NODE, "snoozed_until", until, NOW))
    assert [state_of(alert, words, NOW) for words in (one, both, thing)] == [
        "open",
        "muted",
        "muted",
    ]
    assert state_of(alert, both, NOW + HOUR) == "open"


def test_what_nobody_acknowledges_within_the_hours_is_escalated_once() -> None:
    (alert,) = evaluated([standing()], [])
    at = NOW + 4 * HOUR
    assert life.escalated([alert], said(), at - HOUR, after_hours=4) == []
    (late,) = life.escalated([alert], said(), at, after_hours=4)
    assert late.escalated_at == "2026-05-04T16:00:00+00:00"
    assert life.escalated([late], said(), at + HOUR, after_hours=4) == []
    taken = said((NODE, "status", "acknowledged", NOW))
    assert life.escalated([alert], taken, at, after_hours=4) == []


def test_an_incident_that_was_merged_keeps_its_alert_under_the_name_that_lives_on() -> None:
    (alert,) = evaluated([standing("crash", incident="old")], [])
    (moved,) = life.renamed([alert], {"incident:old": "incident:new"})
    (changed,) = evaluated([standing("crash", incident="new")], [moved]) or [moved]
    assert (changed.alert_id, changed.target) == (alert.alert_id, "incident:new")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(RULES)), st.sampled_from([NODE, "action:run-aaaaaaaaaaaa"])
        ),
        max_size=6,
    ),
    st.integers(1, 4),
)
def test_however_often_the_rules_are_asked_each_thing_has_one_open_alert(
    found: list[tuple[str, str]], n_times: int
) -> None:
    held: dict[str, Alert] = {}
    for n in range(n_times):
        now = NOW + n * HOUR
        for alert in evaluated([standing(*one) for one in found], [*held.values()], at=now):
            held[alert.alert_id] = alert
    assert sorted(a.target for a in held.values()) == sorted({target for _, target in found})
    assert all(replace(a).resolved_at is None for a in held.values())
