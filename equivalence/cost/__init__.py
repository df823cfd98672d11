"""What an implementation costs: time, memory, lines to know, depth of its stack.

lines.py counts code, floors.py has the loops by hand that stand beside, agents.py asks
an implementation a conversation of so many model calls, fresh.py is a process of its
own, measuring.py puts it together.
"""
