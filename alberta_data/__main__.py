"""`python -m alberta_data`: the command line without the script."""

from alberta_data.cli.main import script

script()
