"""Servers on the loopback interface, and access to the ports that processes open."""
