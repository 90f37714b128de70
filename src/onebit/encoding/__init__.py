"""Records to rows: named fields of any kind become numbers, online, and the same on replay."""
