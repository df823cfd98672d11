"""The three lines of plain.py, where a tool raises and where the budget ends."""

from docs.examples.failing_tools import TOOLS
from docs.examples.plain import answer

QUESTION = "北京和上海今天哪个更暖和？"

try:
    answer(QUESTION, tools=TOOLS)
except Exception as error:
    print(f"a tool raises     → {type(error).__name__}: {error}")

for limit in (2, 3, 4):
    try:
        last = answer(QUESTION, recursion_limit=limit)[-1]
        print(f"recursion_limit {limit} → {last.content}")
    except Exception as error:
        print(f"recursion_limit {limit} → {type(error).__name__}")
