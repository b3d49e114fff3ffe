"""The machines around this process: cluster, signals, preemption notices and lost peers; nothing is trained here."""
