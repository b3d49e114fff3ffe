"""The state of runs in memory and on disk: tasks, records, folders, registry and caches; nothing is executed here."""
