"""Pure functions from evidence to verdict: no I/O, no launcher, standard library only."""
