"""Gathers what trials leave on their hosts: cores and backtraces, logs, memory traces; and what may leave the house."""
