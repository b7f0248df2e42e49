"""The real library as a subject: a user's checkout, what its version can have, and the shims that carry it on CPU."""
