"""Distilled counterpart of hyper_parallel.platform."""
