"""The one error that is the user's: a setting, a file or a name that cannot work."""


class UsageError(ValueError):
    """What was given cannot work; the message is one line that says what to do."""
