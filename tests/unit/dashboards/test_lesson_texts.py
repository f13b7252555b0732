"""The words of the lesson keep to the marks of their language."""

import dataclasses
import re
from collections.abc import Iterator

from gpuledger_dashboards.lesson_texts import CHINESE, ENGLISH, Texts


def _said(texts: Texts) -> Iterator[str]:
    waiting: list[object] = [getattr(texts, field.name) for field in dataclasses.fields(texts)]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case dict() as texts_by_key:
                waiting += texts_by_key.values()
            case tuple() as several:
                waiting += several


def test_chinese_sentences_have_chinese_marks() -> None:
    for text in _said(CHINESE):
        assert not re.search("[\u4e00-\u9fff][,;:?]", text), text


def test_english_has_none() -> None:
    assert not any(re.search("[\u3000-\u9fff\uff00-\uffef]", text) for text in _said(ENGLISH))
