"""Learners and rivals on the same shuffles of a user's data."""
