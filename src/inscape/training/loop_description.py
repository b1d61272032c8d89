"""Describes a training loop: its optimizer, hyper-parameters and data, as about.json holds them."""

import functools
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from inscape.training.loop_log import option_values, plain_options, split_names
from inscape.training.loop_update import optimizer_name
from inscape.training.losses import Loss
from inscape.training.recording_checks import loss_name, trained_names
from inscape.training.settings import FitSettings
from inscape.training.trajectory import SCHEMA, fingerprint


class LoopDescription:
    """Model, optimizer, loss and data of a loop, by name and number.

    Attributes:
        trainable: Names of the parameters that the optimizer updates.
        parameters: These parameters.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: str | Loss,
        data: tuple[Tensor, Tensor] | None,
    ) -> None:
        self._model, self._optimizer, self._loss, self._data = model, optimizer, loss, data
        self.trainable = trained_names(model, optimizer)
        named = dict(model.named_parameters())
        self.parameters = [named[name] for name in self.trainable]
        options = plain_options(optimizer.param_groups[0])
        self._names, self._keys = tuple(options), split_names(tuple(options))
        self._kinds = tuple(kind for kind, _ in options.values())
        self._settings = self._initial_settings()

    @property
    def options_shape(self) -> tuple[int, int]:
        """Return the numbers of parameter groups and of hyper-parameters."""
        return len(self._optimizer.param_groups), len(self._names)

    def options(self) -> list[list[float]]:
        """Return the hyper-parameters of all groups as they are now."""
        return [option_values(group, self._keys) for group in self._optimizer.param_groups]

    def about(
        self, *, batch: int | None, record: int, collected: str, loop: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the description as plain values.

        Args:
            batch: Samples of a batch.
            record: Updates between two checkpoints.
            collected: Fingerprint of the data that the recording collected; empty if the caller
                passed them.
            loop: What is known of the loop by now beside its optimizer.
        """
        named = {id(p): name for name, p in self._model.named_parameters()}
        groups = tuple(
            tuple(named[id(p)] for p in group["params"] if id(p) in named)
            for group in self._optimizer.param_groups
        )
        own = {"option_names": self._names, "option_kinds": self._kinds, "groups": groups}
        return {
            "schema": SCHEMA,
            "settings": asdict(self._settings) | {"batch": batch, "record": record},
            "trainable": self.trainable,
            "data": collected or self._fingerprint,
            "loop": own | dict(loop),
        }

    @functools.cached_property
    def _fingerprint(self) -> str:
        return "" if self._data is None else fingerprint(*self._data)

    def _initial_settings(self) -> FitSettings:
        groups = self._optimizer.param_groups
        return FitSettings(
            loss=loss_name(self._loss),
            optimizer=optimizer_name(self._optimizer),
            lr=max(float(group["lr"]) for group in groups),
            momentum=max(float(group.get("momentum", 0.0)) for group in groups),
            nesterov=any(bool(group.get("nesterov")) for group in groups),
            weight_decay=max(float(group.get("weight_decay", 0.0)) for group in groups),
            betas=groups[0].get("betas", (0.9, 0.999)),
            batch=None, epochs=1, schedule=None, stop_loss=None, stop_on="running", penalties=(),
            seed=0, record=1,
        )  # fmt: skip
