"""Files, locally and on gs://, and the event log; nothing here knows what the files mean."""
