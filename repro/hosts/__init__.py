"""Hosts of others: the inventory that Ansible and the engines share, and what is wrong with each host."""
