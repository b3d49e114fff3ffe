"""Facts about machines, accelerators, regions and quotas, and searches in them; the rules are in `rules`."""
