"""The playground: watch learners learn, draw points for them, be asked, or be the oracle yourself.

`scenes`: rounds, and their picture. `session`: learners, the bounds of the theorems, and play. `digits`: feedback and
labels by a person. `server`: HTTP, with the files in `page/`; the other modules do not depend on it.
"""
