"""Attribution of a recorded training: quadrature along its steps, and the optimizer state."""
