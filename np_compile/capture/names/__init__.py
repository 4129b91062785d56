"""What names mean in captured code: NumPy's, helpers', methods, builtins."""
