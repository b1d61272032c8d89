"""Volhejn, "Smoothness of Functions Learned by Neural Networks" (2020).

Which measure of smoothness does gradient descent keep low by itself? Two designs: let the training
set grow and see whether the measure grows with it (tables 4.1 to 4.3); add the measure to the loss
and see whether it can be lowered at the same training loss (table 4.4, figures 4.2 to 4.5).

We reproduce all tables and figures. Figures that the thesis reprints from others (1, 2, 2.1) are
drawn from runs of our own.
"""
