"""Klindt, "Controlling Neural Network Smoothness for Neural Algorithmic Reasoning" (TMLR 2023).

Can a network with one hidden layer learn to add two numbers? It cuts the plane into ridges instead;
a Gaussian process with a long length scale does not. Holding the standard deviation of the weights
at sigma over the root of the inputs gives the network a length scale of its own, 1 / sigma.
"""
