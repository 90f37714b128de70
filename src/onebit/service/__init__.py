"""Deciders over HTTP, for several applications: ``onebit serve``.

`app`: the routes, and what the web pages in ``page/`` poll. `gate`: checks of every request, and errors; for the
playground too. `workers`: a thread for each decider. `access`: tokens and the audit log. `server`: connections and the
process. `metrics`: for Prometheus.
"""
