"""Distilled counterpart of hyper_parallel.platform.mindspore.fully_shard."""
