"""Goldblum et al., "Truth or Backpropaganda?" (ICLR 2020): its results; no experiment yet."""
