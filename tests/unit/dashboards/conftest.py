"""The client that pages are given in these tests."""

from collections.abc import Iterator

import pytest
import streamlit as st
from tests.unit.dashboards.pages import FakeClient

from gpuledger_dashboards import data


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeClient]:
    fake = FakeClient()
    st.cache_data.clear()
    st.cache_resource.clear()
    monkeypatch.setattr(data, "open_client", lambda *_: fake)
    yield fake
    st.cache_data.clear()
    st.cache_resource.clear()
