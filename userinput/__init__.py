"""Input written by users: reading it strictly and reporting what is wrong with it; it knows no pipeline and no job."""
