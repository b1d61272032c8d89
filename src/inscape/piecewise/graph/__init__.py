"""The exported graph of a network as affine and piecewise-linear operations."""
