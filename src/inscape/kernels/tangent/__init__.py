"""Per-sample gradients of a module and their inner products: what tangent kernels are made of."""
