"""Tiny networks in lanes: their products are taken in tiles that stay in the registers."""
