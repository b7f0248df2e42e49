"""What runs inside a rank: it marks phases, takes readings and writes evidence. MindSpore is imported here alone."""
