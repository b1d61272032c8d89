"""Sattelberg, "Local Linearity of ReLU Neural Networks" (dissertation, 2026).

Of what pieces is a ReLU network made, and what do the pieces say about it? How hard is a Boolean
function for a network, and how small a network computes it (chapter 3)? Which bounded shapes does a
layer enclose (chapter 4)? Small networks are built and trained on sine and on XOR (chapter 5);
classifiers of MNIST and CIFAR-10 are cut by planes and read as images (chapter 6).

Of the tables and figures that have no module here some are still to come. The rows of table 6.1
that need weights trained on ImageNet are left out.
"""
