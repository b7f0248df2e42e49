"""A small package of our own under the module paths and names of 2026-03, on which mends and exports are tested."""
