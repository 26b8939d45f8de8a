"""``python -m tests.model --sequences 10000``"""

import sys

from tests.model.proof import main

if __name__ == "__main__":
    sys.exit(main())
