"""The run of compiled programs: memory, threads, calls of torch in between, sequences."""
