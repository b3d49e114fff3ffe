"""The mask: what steps and replicas see of this machine."""
