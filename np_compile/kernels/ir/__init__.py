"""The loop IR: programs, expressions, their text, their rules and their meaning."""
