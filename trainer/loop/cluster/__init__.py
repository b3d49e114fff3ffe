"""The machines around this process: cluster, devices, signals and preemption notices; nothing is trained here."""
