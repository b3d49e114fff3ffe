"""Seeded proofs that take hours: random faults change no byte. Each one resumes after a kill."""
