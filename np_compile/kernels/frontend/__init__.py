"""From a tensor graph to the loop IR."""
