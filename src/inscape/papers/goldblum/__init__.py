"""Goldblum et al., "Truth or Backpropaganda? An Empirical Investigation of Deep Learning Theory".

ICLR 2020. Suboptimal local minima exist and are easy to begin at; a norm larger than the smallest
can generalise better; low rank makes networks neither better nor more robust; the tangent kernel
of wide networks stays, except where residual connections and batch norm are.
"""
