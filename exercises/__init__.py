"""The exercises: where each starts, a hint, a solution, and a checker that cannot be
fooled by what is known to be wrong."""
