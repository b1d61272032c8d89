"""A module as a function of its input: probing, Jacobians in batches, substituted parameters."""
