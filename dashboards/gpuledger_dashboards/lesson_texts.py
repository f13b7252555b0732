"""The words of the lesson, in English and in Traditional Chinese. Pure.

The lesson tells of the old world, so that it is the one page that speaks of free priorities.
"""

from dataclasses import dataclass

Question = tuple[str, tuple[str, ...], int, str]
"""What is asked, the answers to choose from, which of them is right, and why."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Every text of the page in one language; ``{…}`` are filled in."""

    language: str
    title: str
    lead: str
    old_title: str
    old_rule: str
    round_label: str
    round_first: str
    round_next: str
    round_last: str
    high: str
    normal: str
    gets: str
    team: str
    budget_title: str
    budget_lead: str
    presets: dict[str, str]
    preset_label: str
    preset_says: dict[str, str]
    share: str
    share_of: str
    wants_of: str
    asks: str
    flat: str
    tree: str
    rules: str
    formula_title: str
    formulas: tuple[tuple[str, str], ...]
    decides_title: str
    decides: tuple[tuple[str, str, str], ...]
    decides_columns: tuple[str, str, str]
    check_title: str
    right: str
    wrong: str
    questions: tuple[Question, ...]


ENGLISH = Texts(
    language="English",
    title="Lesson",
    lead="Four teams want 60 GPUs each, and there are 100. Who gets what, and who says so?",
    old_title="1. Everybody ranks their own work",
    old_rule=(
        "The old rule: each team says how important its work is. HIGH is served before NORMAL, and equals share alike. "
        "After each round, the team that got least calls its own work HIGH. Step through the rounds."
    ),
    round_label="Round",
    round_first="Round 1: everybody is NORMAL, and each team gets {gpus} GPUs.",
    round_next="Round {n}: team {team} got least, and calls its work HIGH. It gets {gpus} GPUs now; {others} pay for it.",
    round_last=(
        "Round {n}: team {team} is the last to call its work HIGH. Everybody is HIGH, each team gets {gpus} GPUs as in the "
        "beginning, and the word says nothing any more. No team did anything foolish on the way: this is what free priorities do."
    ),
    high="HIGH",
    normal="NORMAL",
    gets="GPUs that it gets",
    team="Team",
    budget_title="2. Budgets instead",
    budget_lead=(
        "Now somebody decides a share for each team by day, and the program divides by it at night. Nobody gains by calling "
        "anything important; the order of work inside one team stays the team's own affair. Change the numbers."
    ),
    presets={
        "budgets": "40, 30, 20, 10",
        "zero": "A has none",
        "equal": "All the same",
        "surplus": "A wants little",
        "nobody": "All zero",
    },
    preset_label="Begin with",
    preset_says={
        "budgets": "Everybody wants more than their share: each gets exactly it.",
        "zero": (
            "A is issued nothing, and the others share what there is by 30 : 20 : 10. What A submits may still run "
            "unallocated on GPUs that nobody uses, free of charge, until somebody needs them."
        ),
        "equal": "Equal shares: 25 each. The same as in round 1, but now nobody can undo it by shouting.",
        "surplus": (
            "A wants 10 of its 40. What it leaves flows to the others: under the flat rule to all of them by their shares, "
            "under the rule of the tree to its sibling B first."
        ),
        "nobody": "Nobody has a share: nothing is issued, and all work runs unallocated.",
    },
    share="share",
    share_of="Share of {team}",
    wants_of="GPUs that {team} wants",
    asks="wants",
    flat="flat rule",
    tree="rule of the tree",
    rules=(
        "The flat rule sets all four teams side by side. Under the rule of the tree they belong to two programs with the same share, "
        "north (A, B) and south (C, D): the programs are divided first, each program among its teams next, and what somebody "
        "leaves flows to siblings first, then upwards."
    ),
    formula_title="The formula",
    formulas=(
        (
            "issued",
            "raise one level for all teams at once; each gets min(wants, share x level); stop when the supply is used up (weighted max-min)",
        ),
        ("in the tree", "the same at each node: first among programs, then among the teams of each"),
        ("entitled", "product of share / siblings' shares down the path x healthy GPUs, through time"),
    ),
    decides_title="3. Who decides these numbers, and on which occasion?",
    decides=(
        ("Within a project", "its lead", "whenever work changes"),
        ("Between projects of a program", "the principal investigator", "when a project begins or ends"),
        ("Between programs", "the program manager, or the director", "at each review, before a period opens"),
    ),
    decides_columns=("What is divided", "Who decides", "When"),
    check_title="4. Did you get it?",
    right="Right.",
    wrong="Not quite.",
    questions=(
        (
            "All four teams are HIGH. What does team D gain by saying so?",
            ("More GPUs than the others", "Nothing: as much as in round 1", "A place before A"),
            1,
            "Where everybody is HIGH, nobody is.",
        ),
        (
            "Team A has 40 % and wants only 10 GPUs. What becomes of the other 30?",
            ("They stand idle until A wants them", "They flow to those who want more", "A may sell them"),
            1,
            "Unused share flows to siblings first, then upwards. A gets its GPUs back as soon as it asks.",
        ),
        (
            "A team's share is 0. May it work at all?",
            ("No", "Yes, unallocated: free, and preemptible at any moment", "Yes, if its work is HIGH"),
            1,
            "Nothing is issued to it, and nothing is refused either: what nobody uses may be used.",
        ),
    ),
)

CHINESE = Texts(
    language="繁體中文",
    title="一堂課",
    lead="四個團隊各要 60 張 GPU，總共只有 100 張。誰拿多少？由誰決定？",
    old_title="1. 每個團隊自己喊重要",
    old_rule=(
        "舊規則：每個團隊自己說工作有多重要。HIGH 先於 NORMAL，同級平分。"
        "每一輪之後，拿得最少的團隊就把自己的工作改成 HIGH。請一輪一輪往下看。"
    ),
    round_label="回合",
    round_first="第 1 輪：大家都是 NORMAL，每個團隊拿到 {gpus} 張 GPU。",
    round_next="第 {n} 輪：團隊 {team} 上一輪拿得最少，於是喊 HIGH，現在拿到 {gpus} 張；代價由 {others} 承擔。",
    round_last=(
        "第 {n} 輪：團隊 {team} 最後一個喊 HIGH。人人都是 HIGH，每隊又回到 {gpus} 張，和一開始一樣，"
        "這個詞不再有任何意義。過程中沒有哪一隊做了傻事：自由的優先權本來就會這樣膨脹。"
    ),
    high="HIGH",
    normal="NORMAL",
    gets="拿到的 GPU",
    team="團隊",
    budget_title="2. 改用預算",
    budget_lead=(
        "現在由人在白天決定每個團隊的份額，程式在夜裡照份額分配。再怎麼喊重要都沒有好處；"
        "團隊內部的先後仍由團隊自己決定。請改改看這些數字。"
    ),
    presets={
        "budgets": "40、30、20、10",
        "zero": "A 沒有預算",
        "equal": "全部相同",
        "surplus": "A 用得少",
        "nobody": "全部為零",
    },
    preset_label="從這裡開始",
    preset_says={
        "budgets": "人人想要的都超過份額：每隊剛好拿到自己的份額。",
        "zero": (
            "A 分配不到，其餘三隊按 30 : 20 : 10 分。A 交出的工作仍可以用沒人用的 GPU 以未分配的方式執行，"
            "不收費，別人要用時就得讓出。"
        ),
        "equal": "份額相同：每隊 25 張。和第 1 輪一樣，但誰也不能再用喊的把它推翻。",
        "surplus": "A 的 40 張只用 10 張。剩下的流向別人：平面規則按份額給所有團隊；樹狀規則先給同一計畫的 B。",
        "nobody": "誰都沒有份額：什麼都不分配，所有工作都以未分配的方式執行。",
    },
    share="份額",
    share_of="{team} 的份額",
    wants_of="{team} 想要的 GPU",
    asks="想要",
    flat="平面規則",
    tree="樹狀規則",
    rules=(
        "平面規則把四個團隊並排。樹狀規則下，它們分屬兩個份額相同的計畫：north（A、B）與 south（C、D）。"
        "先分給計畫，再由計畫分給團隊；誰用不完，先流向同一計畫的手足，再往上流。"
    ),
    formula_title="公式",
    formulas=(
        ("分配", "所有團隊的水位同時上升；每隊拿 min（想要，份額 × 水位）；供給用完為止（加權 max-min）"),
        ("在樹中", "每個節點都一樣：先在計畫之間，再在各計畫的團隊之間"),
        ("應得", "沿路徑把 份額 / 手足份額總和 相乘 × 健康的 GPU，再對時間累積"),
    ),
    decides_title="3. 這些數字由誰、在什麼場合決定？",
    decides=(
        ("專案之內", "專案負責人", "工作有變動時"),
        ("同一計畫的專案之間", "計畫主持人", "專案開始或結束時"),
        ("計畫之間", "計畫經理或所長", "每次審議，在新的期間開始之前"),
    ),
    decides_columns=("分什麼", "誰決定", "何時"),
    check_title="4. 懂了嗎？",
    right="答對了。",
    wrong="不太對。",
    questions=(
        (
            "四個團隊都喊 HIGH。團隊 D 這樣喊得到什麼？",
            ("比別人更多的 GPU", "什麼都沒有：和第 1 輪一樣多", "排在 A 前面"),
            1,
            "人人都是 HIGH，就等於沒有人是。",
        ),
        (
            "團隊 A 有 40 %，卻只要 10 張 GPU。另外 30 張怎麼辦？",
            ("閒置，等 A 要用", "流向想要更多的團隊", "A 可以賣掉"),
            1,
            "沒用到的份額先流向手足，再往上流。A 一要用就拿得回來。",
        ),
        (
            "某團隊的份額是 0。它還能做事嗎？",
            ("不能", "能，以未分配的方式：免費，但隨時可能被請走", "能，只要工作是 HIGH"),
            1,
            "不分配給它，但也不拒絕它：沒人用的就可以用。",
        ),
    ),
)

LANGUAGES = {"en": ENGLISH, "zh-Hant": CHINESE}
"""Name in the page's address -> the texts."""
