"""Distilled counterpart of hyper_parallel.core.dtensor."""
