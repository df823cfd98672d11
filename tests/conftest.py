"""What all tests share: settings come from the tests, not from the developer's shell."""

import os

for _name in [name for name in os.environ if name.startswith("LLM_")]:
    del os.environ[_name]
