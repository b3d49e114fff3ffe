"""What a run keeps on disk and in memory: tasks, records, folders and the cache; nothing is executed here."""
