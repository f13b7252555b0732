"""What charts are put together from."""

from gpuledger_dashboards import axes


def test_accounts_keep_their_order_and_days_their_names() -> None:
    assert axes.accounts_axis(["b", "a"]).to_dict()["sort"] == ["b", "a"]
    day = axes.day_axis(28, 3).to_dict()
    assert day["scale"] == {"type": "utc"}
    assert day["axis"]["tickCount"] == {"interval": "day", "step": 10}


def test_lines_have_their_dashes_in_the_legend() -> None:
    assert axes.legend_of("Layer", line=True).to_dict()["symbolType"] == "stroke"
    assert "symbolType" not in axes.legend_of("Part").to_dict()


def test_a_scale_gives_each_thing_its_colour() -> None:
    assert axes.scale_of({"x": "#000", "y": "#fff"}).to_dict() == {
        "domain": ["x", "y"],
        "range": ["#000", "#fff"],
    }


def test_stacked_parts_stand_in_their_order() -> None:
    encoding = axes.stacked({"x": "#000"})
    assert encoding["order"].to_dict()["field"] == "order"
    assert axes.hours_axis().to_dict()["format"] == ",.0f"
    assert axes.data_of([{"a": 1}]) == {"values": [{"a": 1}]}
