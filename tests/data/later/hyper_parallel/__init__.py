"""A small package of our own under the later layout's module paths and names, on which mends and exports are tested.

It is written from the public names in the reports; what it does is our own and no more than the faults need.
"""
