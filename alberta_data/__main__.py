"""`python -m alberta_data`: the command line without the script."""

import sys

from alberta_data.cli.main import main

sys.exit(main())
