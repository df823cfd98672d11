import sys

from chat import main

sys.exit(main("stage4"))
