"""The tree of accounts: sums, bars, causes, and the sentence at the top."""

from tests.unit.dashboards.answers import HOUR, UNKNOWN, budget_row

from gpuledger_dashboards import budgets

ROWS = [
    budget_row("alpha/language/dialogue", 100, 120),
    budget_row("alpha/language/translation", 50, 10),
    budget_row("alpha/robotics", 10, 10),
]


def test_parents_stand_before_children_and_sum_them() -> None:
    nodes = budgets.tree(ROWS)
    assert [(node.account, node.depth) for node in nodes] == [
        ("alpha", 0),
        ("alpha/language", 1),
        ("alpha/language/dialogue", 2),
        ("alpha/language/translation", 2),
        ("alpha/robotics", 1),
    ]
    assert nodes[0].amounts["budget_gpu_ms"] == 160 * HOUR
    assert nodes[1].amounts["charged_gpu_ms"] == 130 * HOUR


def test_siblings_that_begin_alike_do_not_mix() -> None:
    nodes = budgets.tree(
        [budget_row("alpha/a", 1, 1), budget_row("alpha/a-b", 2, 2), budget_row("alpha/a/x", 4, 4)]
    )
    assert [node.account for node in nodes] == ["alpha", "alpha/a", "alpha/a/x", "alpha/a-b"]
    assert nodes[1].amounts["budget_gpu_ms"] == 5 * HOUR


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    nodes = budgets.tree([budget_row("alpha/a", 1, 1), budget_row("alpha/b", 0, 5, **UNKNOWN)])
    assert nodes[0].amounts["owed_gpu_ms"] is None
    row = budgets.table(nodes)[2]
    assert row["Owed"] == "unknown"
    assert (row["Budget"], row["Available"], row["of budget"]) == ("none", "none", "unknown")
    assert not nodes[2].is_over_budget


def test_the_table_says_who_is_over_in_words() -> None:
    names = [row["Account"] for row in budgets.table(budgets.tree(ROWS))]
    assert names[2] == "\u2003\u2003dialogue (over budget)"
    assert names[4] == "\u2003robotics"


def test_the_summary_answers_at_a_glance() -> None:
    assert budgets.summary(budgets.tree(ROWS)) == (
        "140.0 of 160.0 budgeted GPU-h were charged (87.5 %); 1 of 3 accounts is over budget: language/dialogue."
    )
    assert "none of 1 accounts is over" in budgets.summary(budgets.tree([budget_row("alpha/a", 2, 1)]))
    nobody = budgets.summary(budgets.tree([budget_row("alpha/a", 0, 5, **UNKNOWN)]))
    assert nobody == "5.0 GPU-h were charged; no account has a budget."
    many = [budget_row(f"alpha/{n}", 1, 2) for n in range(5)]
    assert "5 of 5 accounts are over budget: 0, 1, 2 and 2 more" in budgets.summary(budgets.tree(many))


def test_bars_stand_largest_budget_first_and_free_use_follows_the_charge() -> None:
    bars, marks = budgets.bars(budgets.tree(ROWS))
    assert list(dict.fromkeys(bar.account for bar in bars)) == [
        "language/dialogue",
        "language/translation",
        "robotics",
    ]
    parts = {bar.part: (bar.start, bar.end) for bar in bars if bar.account == "language/dialogue"}
    assert parts == {"Budget": (0, 100), "Charged": (0, 120), "Free use, not charged": (120, 121)}
    assert [mark.at for mark in marks] == [120, 10, 10]
    assert budgets.bars(budgets.tree([budget_row("alpha/a", 0, 5, **UNKNOWN)]))[1] == []


def test_causes_sum_to_budget_less_delivered() -> None:
    nodes = budgets.tree(ROWS)
    found = budgets.causes(nodes)
    assert [(c.account, c.cause, c.value) for c in found] == [
        ("language/dialogue", "Demand", -20),
        ("language/translation", "Demand", 40),
    ]
    row = budgets.variance_table(nodes)[0]
    assert (row["Budget - delivered"], row["Demand"], row["Scheduler"]) == ("20.0", "20.0", "0.0")


def test_the_reason_for_unknown_figures_is_the_apis() -> None:
    assert budgets.reason(ROWS) is None
    assert budgets.reason([budget_row("alpha/a", 0, 5, **UNKNOWN)]) == "no inventory of this cluster"


def test_an_account_that_is_its_own_root_keeps_its_name() -> None:
    assert budgets.label("alpha") == "alpha"
    assert budgets.label("alpha/x/y") == "x/y"


def test_a_download_has_every_leaf() -> None:
    rows = budgets.csv_rows(ROWS)
    assert [row["account"] for row in rows] == [row.account for row in ROWS]
    assert rows[0]["variance_demand_gpu_ms"] == -20 * HOUR
