"""``python -m importaudit``."""

from importaudit.cli import main

if __name__ == "__main__":
    main()
