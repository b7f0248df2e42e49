"""How the ranks of a trial are started, watched and ended. Nothing here imports MindSpore or judges."""
