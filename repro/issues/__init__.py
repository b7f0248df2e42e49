"""One folder an issue: issue.yaml and its case programs."""
