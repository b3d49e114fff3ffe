"""What processes find on the loopback interface, and who reaches the ports that they open."""
