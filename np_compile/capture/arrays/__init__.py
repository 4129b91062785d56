"""Stand-ins for arrays, and the ways from them to data and back."""
