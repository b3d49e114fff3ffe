"""What resumes exactly: a program per row of the page, and an environment per folder of programs."""
