"""Judges a fault of growth."""
from typing import Any
def judge(fault: Any, tier: Any, judged: Any) -> Any: raise NotImplementedError
