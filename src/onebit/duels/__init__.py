"""Learners against the adversaries of the lower bounds."""
