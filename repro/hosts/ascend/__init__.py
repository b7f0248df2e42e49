"""What an Ascend host says of itself, read and judged; standard library and Python 3.9 only, since it runs on hosts.

Ansible's modules reach this folder as ``module_utils``, ``repro doctor --hosts`` sends it over SSH: one preflight.
"""
