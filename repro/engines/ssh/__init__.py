"""Engine ssh: trials on many hosts over Fabric connections, each with a deadline of its own."""
