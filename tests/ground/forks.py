"""A program that forks, as the web server does, and stays."""

import os
import sys
import time

if __name__ == "__main__":
    if os.fork():
        sys.stdout.write("forked\n")
        sys.stdout.flush()
    time.sleep(600)
