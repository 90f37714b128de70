"""Deciders over HTTP, for several applications: ``onebit serve``.

`app` has the routes, `server` begins and ends, `connections` says how many there may be, `protocol` refuses what is no
request, `gate` is what every request passes, `desks` the deciders and their threads, `compiling` what these wait for at
first, `stores` where they are, `bodies` what requests may say, `tokens` who may ask, `limits` how much, `problems` the
errors, `metrics` and `journal` what the operator sees, `audit` who did what. `desk_page` is the page for people, whose
files are in ``page/``; `watching` and `tickets` are what it is told.
"""
