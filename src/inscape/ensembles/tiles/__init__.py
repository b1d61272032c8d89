"""Tiny networks in lanes: their products are computed in tiles that stay in the registers."""
