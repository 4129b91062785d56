"""Tensor graph -> loop IR -> C: the native back end's compiler."""
