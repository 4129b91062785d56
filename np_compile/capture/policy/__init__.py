"""Compiled or in NumPy: what is known of the times of calls, loops and compiles."""
