"""Learners against the adversaries of the lower bounds: who plays whom, the table, the pictures."""
