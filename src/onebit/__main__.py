"""``python -m onebit``."""

from onebit.cli import main

if __name__ == "__main__":
    main()
