"""Code generators, one a folder."""
