"""The playground: watch learners learn, draw points for them, or be the oracle yourself.

`scenes`: rounds, and their picture. `session`: learners, the bounds of the theorems, play, and feedback by a person.
`server`: HTTP, with the files in `page/`; the other modules do not depend on it.
"""
