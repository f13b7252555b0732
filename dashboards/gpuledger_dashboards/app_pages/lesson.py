"""The lesson: why free priorities end where they began, and what budgets give instead."""

import streamlit as st

from gpuledger_dashboards import charts, data, figures, frame, lesson
from gpuledger_dashboards.lesson import PRESETS, TEAMS, Preset
from gpuledger_dashboards.lesson_texts import LANGUAGES, Texts


def choose_language() -> Texts:
    """Let the reader choose; the choice stands in the page's address."""
    names = {name: texts.language for name, texts in LANGUAGES.items()}
    return LANGUAGES[frame.choose("Language / 語言", names, "lang", width=200)]


def show_old_world(texts: Texts) -> None:
    """Step through the rounds in which everybody ranks their own work."""
    st.subheader(texts.old_title)
    st.markdown(figures.plain(texts.old_rule))
    rounds = lesson.old_world()
    number: int = st.select_slider(texts.round_label, range(1, len(rounds) + 1), key="round")
    now = rounds[number - 1]
    st.altair_chart(
        charts.teams(
            lesson.round_bars(now, texts.high, texts.normal),
            {texts.normal: "#a9b4c0", texts.high: "#d55e00"},
            most=lesson.WANTED,
        ),
        key="rounds",
        alt=f"{texts.gets}: " + ", ".join(f"{team} {lesson.whole(now.gpus[team])}" for team in TEAMS),
    )
    st.markdown(f"**{figures.plain(said_of(texts, number, now))}**")


def said_of(texts: Texts, number: int, now: lesson.Round) -> str:
    """Return a round in a sentence."""
    if now.newest is None:
        return texts.round_first.format(gpus=lesson.whole(now.gpus[TEAMS[0]]))
    gpus = lesson.whole(now.gpus[now.newest])
    if now.is_over:
        return texts.round_last.format(n=number, team=now.newest, gpus=gpus)
    others = ", ".join(team for team in TEAMS if team != now.newest)
    return texts.round_next.format(n=number, team=now.newest, gpus=gpus, others=others)


def choose_budgets(texts: Texts) -> tuple[dict[str, int], dict[str, int]]:
    """Let the reader set shares and wishes, from a preset on."""
    key = frame.choose(
        texts.preset_label, {preset.key: texts.presets[preset.key] for preset in PRESETS}, "begin"
    )
    chosen = next(preset for preset in PRESETS if preset.key == key)
    st.markdown(figures.plain(texts.preset_says[chosen.key]))
    shares, wanted = dict[str, int](), dict[str, int]()
    for n, (column, team) in enumerate(zip(st.columns(4), TEAMS, strict=True)):
        shares[team] = _number(
            column, texts.share_of.format(team=team), "share", team, chosen, chosen.shares[n]
        )
        wanted[team] = _number(
            column, texts.wants_of.format(team=team), "wants", team, chosen, chosen.wanted[n]
        )
    return shares, wanted


def _number(
    column: "st.delta_generator.DeltaGenerator", label: str, kind: str, team: str, preset: Preset, value: int
) -> int:
    # The preset is part of the key: choosing another one sets every number anew.
    return int(
        column.number_input(label, 0, lesson.GPUS_MAX, value, step=5, key=f"{kind} {team} {preset.key}")
    )


def show_budgets(texts: Texts) -> None:
    """Show what budgets give, under the flat rule and under that of the tree."""
    st.subheader(texts.budget_title)
    st.markdown(figures.plain(texts.budget_lead))
    shares, wanted = choose_budgets(texts)
    flat = frame.ask(lambda: data.divide(lesson.flat_tree(shares, wanted)))
    tree = frame.ask(lambda: data.divide(lesson.program_tree(shares, wanted)))
    names = (texts.asks, texts.flat, texts.tree)
    st.altair_chart(
        charts.teams(
            lesson.budget_bars(wanted, flat, tree, names),
            dict(zip(names, ("#a9b4c0", "#0072b2", "#009e73"), strict=True)),
            most=lesson.WANTED,
        ),
        key="budgets",
        alt=f"{texts.budget_title}: {', '.join(names)}",
    )
    frame.table(
        [
            {
                texts.team: team,
                texts.share: str(shares[team]),
                texts.asks: str(wanted[team]),
                texts.flat: flat.issued[team.lower()],
                texts.tree: tree.issued[lesson.paths()[team]],
            }
            for team in TEAMS
        ],
        caption=texts.rules,
    )
    st.caption(figures.plain(texts.rules))
    with st.expander(texts.formula_title):
        for name, formula in texts.formulas:
            st.markdown(f"**{figures.plain(name)}** = {figures.plain(formula)}")


def show_who_decides(texts: Texts) -> None:
    """Show who decides the numbers, and when."""
    st.subheader(texts.decides_title)
    frame.table(
        [dict(zip(texts.decides_columns, row, strict=True)) for row in texts.decides],
        caption=texts.decides_title,
        texts=True,
    )


def show_check(texts: Texts) -> None:
    """Ask whether it was understood; nothing is kept."""
    st.subheader(texts.check_title)
    for n, (question, answers, right, why) in enumerate(texts.questions):
        said = st.radio(figures.plain(question), answers, index=None, key=f"question {n} {texts.language}")
        if said is None:
            continue
        if said == answers[right]:
            st.success(figures.plain(f"{texts.right} {why}"), icon=":material/check:")
        else:
            st.warning(figures.plain(f"{texts.wrong} {why}"), icon=":material/replay:")


def main() -> None:
    """Show the page."""
    texts = choose_language()
    st.title(texts.title)
    st.markdown(figures.plain(texts.lead))
    show_old_world(texts)
    show_budgets(texts)
    show_who_decides(texts)
    show_check(texts)


main()
