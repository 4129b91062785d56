"""docs/coverage.md."""


def write() -> None: ...
