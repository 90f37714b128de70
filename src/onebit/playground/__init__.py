"""The playground: watch learners learn, draw points for them, or be the oracle yourself.

`scenes`: rounds. `picture`: projection into the plane. `catalogue`: learners. `session`: play. `promise`: bounds of the
theorems. `oracle`: feedback by a person. `sessions`: limits on number and idle time. `server`: HTTP, with the files in
`page/`; the other modules do not depend on it.
"""
