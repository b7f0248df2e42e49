"""Renders a reviewed run: as JSON, for a terminal, as Markdown. Knows nothing of how the verdict was reached."""
