"""Files, locally and on gs://, and the event log; what is in the other files is known to the rooms that write them."""
