"""Tests of the recorder that is shipped beside the engine."""
