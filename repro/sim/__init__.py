"""The simulated Ascend tier: MindSpore's real Ascend host code over stand-in CANN libraries, without numbers."""
