"""`python -m app.cli` is `faultline`."""

import sys

from app.cli import main

sys.exit(main())
