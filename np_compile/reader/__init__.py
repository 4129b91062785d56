"""The reader: Python source with loops and branches, read whole, as one compiled function.

`Region` (`region.py`) is a function that is compiled for the types of its arguments. `read.py` and
its neighbours read the source and write the C; `resume.py` makes the Python that goes on where
compiled code leaves.
"""
