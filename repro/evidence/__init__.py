"""The files of a run: their types, how they are written, how they are read back and checked."""
