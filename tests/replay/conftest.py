"""What the tests of calls that are known in C begin with."""

import pytest

from np_compile import errstate


@pytest.fixture(autouse=True)
def _state_of_errors():
    """C knows the state of floating-point errors that other tests have left."""
    errstate.raises()
