"""Streamlit pages over the ledger API."""
