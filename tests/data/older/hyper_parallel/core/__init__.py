"""Part of the test package of the 2026-03 layout."""
