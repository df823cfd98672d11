"""The probe: what an endpoint can do, found out by asking it, and what follows from it.

asking.py sends a bounded number of requests, reading.py reads what came, probe.py says
what that means for the settings and for each way of asking for tools.
"""
