"""Tests against the real SGLang on this machine's CPU; see conftest.py for how to run them."""
