"""Distilled counterpart of hyper_parallel.core.fully_shard."""
