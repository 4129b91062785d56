"""Calls that are kept, and run without Python: proof, guards, plan, results."""
