"""A small library of our own with the module paths, names and shape of the code in the reports, on MindSpore alone.

It is what the distilled cases run: a mesh, a sharded parameter, a scheduler that unshards before a layer and reduces
gradients after it. It has the reported faults on purpose and by the same means; mends find their targets in it by the
names that the real library uses. It is loaded in ranks only: it imports MindSpore.
"""
