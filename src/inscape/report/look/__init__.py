"""The look at a network: every instrument that applies, within a time budget, on one page."""
