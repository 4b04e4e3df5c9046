"""`python -m quantgate`."""

from quantgate.cli.entry import main

if __name__ == "__main__":
    main()
