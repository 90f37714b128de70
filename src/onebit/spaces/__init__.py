"""Spaces turn features into scores: linear weights, for dense and sparse rows, and a support set with a kernel."""
