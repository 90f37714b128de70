"""Learn a K-way classifier when the only answer you ever get is "right" or "wrong"."""
