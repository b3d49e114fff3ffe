"""Everything that a user sees of a run: progress, summary, failure and report; no decisions are made here."""
