"""`python -m leanguard_host` is the `leanguard` command."""

from leanguard_host.cli import main

if __name__ == "__main__":
    main()
