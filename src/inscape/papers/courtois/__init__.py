"""Courtois, Morel and Arias, "Can neural networks extrapolate?" (2022).

A network that was trained by gradient descent is nearly a kernel machine over its training data
(Domingos). How nearly (sections 3 to 5), which samples the kernel takes for alike (5, 6.3), and
does such a network find the rule of a task or only interpolate (6)?
"""
