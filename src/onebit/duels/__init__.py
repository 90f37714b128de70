"""Learners against the adversaries of the lower bounds: the duels, the table, the figures."""
