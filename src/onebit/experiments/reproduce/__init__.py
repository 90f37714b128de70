"""The paper's experiments and figures, one file each."""
