"""Whole Hessians and Gauss-Newton matrices of small networks, by plain autograd."""

import torch
from torch import nn
from torch.nn import functional

LOSSES = {"mse": functional.mse_loss, "cross_entropy": functional.cross_entropy}


def loss_of(model, x, y, name):
    """Return the loss as a function of the flat vector of all parameters, and that vector."""
    named = dict(model.named_parameters())

    def loss(flat):
        parts = flat.split([p.numel() for p in named.values()])
        values = {key: part.view_as(p) for (key, p), part in zip(named.items(), parts, strict=True)}
        return LOSSES[name](torch.func.functional_call(model, values, (x,)), y)

    return loss, nn.utils.parameters_to_vector(named.values()).detach()


def hessian(model, x, y, name):
    """Return the Hessian of the loss, one row of the Jacobian of the gradient after the other."""
    loss, flat = loss_of(model, x, y, name)
    flat = flat.requires_grad_()
    (gradient,) = torch.autograd.grad(loss(flat), flat, create_graph=True)
    rows = [torch.autograd.grad(entry, flat, retain_graph=True)[0] for entry in gradient]
    return torch.stack(rows)


def gauss_newton(model, x, y, name):
    """Return the Gauss-Newton matrix: Jacobians around the Hessian of the loss by the outputs."""
    total = 0.0
    for point, label in zip(x, y, strict=True):
        outputs = model(point[None])
        rows = [
            torch.cat(
                [g.flatten() for g in torch.autograd.grad(o, model.parameters(), retain_graph=True)]
            )
            for o in outputs[0]
        ]
        jacobian = torch.stack(rows)
        curved = torch.autograd.functional.hessian(
            lambda o, label=label: LOSSES[name](o[None], label[None]), outputs[0].detach()
        )
        total = total + jacobian.T @ curved @ jacobian / len(x)
    return total
