"""``python -m aliquot``: the same command where the script is not on PATH."""

from aliquot.cli.main import main

if __name__ == "__main__":
    main()
