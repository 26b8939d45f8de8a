"""``python -m tests.mutants --seed 7 --sample 100``"""

import sys

from tests.mutants.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
