"""`python -m quantgate`."""

from quantgate.cli.main import main

if __name__ == "__main__":
    main()
