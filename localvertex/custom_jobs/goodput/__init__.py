"""What the time of a custom job was spent on, from the event logs of its replicas."""
