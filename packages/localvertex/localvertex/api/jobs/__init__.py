"""Jobs of all kinds, each in a thread with processes of this machine, with the same code as in pipelines."""
