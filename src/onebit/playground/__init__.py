"""The playground: watch learners learn, draw points for them, or be the oracle yourself.

`scenes` has the rounds, `picture` shows them in the plane, `catalogue` says who can play, `session` plays and
`promise` measures what the theorems say about it. `oracle` asks a person. `sessions` keeps all of them within bounds.
None of these knows the web: `server` does, and `page/` is what it shows.
"""
