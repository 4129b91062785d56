"""Recordings of NumPy calls: a tree of them (`node`), what a call in it is (`call`), and the keys
by which it is found again (`key`)."""
