"""hyper-repro: reproduce, judge and report native and distributed faults of MindSpore's hyper-parallel library."""

__version__ = "0.1.0"
