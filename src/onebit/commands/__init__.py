"""What the command line does, one file per command; `onebit.cli` names their options, `options.py` those of several."""
