"""The facts about machines, accelerators, regions and quotas; no rule is decided here."""
