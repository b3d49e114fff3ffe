"""Files, locally and on gs://, and the event log; other formats are known to the packages that write them."""
