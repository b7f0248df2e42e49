"""Part of the test package of the later layout."""
