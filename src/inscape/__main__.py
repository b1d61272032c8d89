"""``python -m inscape`` does what ``inscape`` does."""

from inscape.cli import main

if __name__ == "__main__":
    main()
