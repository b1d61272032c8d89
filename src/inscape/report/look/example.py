"""The built-in example: a small ReLU network that learns scikit-learn's digits in seconds."""

from inscape.loaders import OpenedData, OpenedModel
from inscape.models import two_layer
from inscape.training import Trajectory, fit

#: The data that it learns.
EXAMPLE = "digits"
HIDDEN = 64
EPOCHS = 40
BATCH = 64
RATE = 1e-3
SEED = 0
#: Updates between checkpoints: about an epoch of the digits.
RECORD = 23


def example(data: OpenedData, *, quiet: bool, seed: int = SEED) -> tuple[OpenedModel, Trajectory]:
    """Return a network trained on the data, with the same weights every time, and its training."""
    assert data.y is not None
    inputs, classes = data.x[0].numel(), 10
    model = two_layer(inputs, HIDDEN, classes, init="he_normal", seed=seed, dtype=data.x.dtype)
    trained = fit(
        model.to(data.x.device),
        data.x,
        data.y,
        loss="cross_entropy",
        optimizer="adam",
        lr=RATE,
        batch=BATCH,
        epochs=EPOCHS,
        seed=seed,
        progress=False if quiet else None,
        record=RECORD,
    )
    assert trained.trajectory is not None
    opened = OpenedModel(
        model=model,
        source=f"built-in example: ReLU network {inputs}-{HIDDEN}-{classes} trained on {data.name}",
        notes=(
            f"trained for this look: {trained.epochs} epochs of Adam at learning rate {RATE:g}, "
            f"batches of {BATCH}, seed {seed}; last training loss {trained.loss:.2g}",
        ),
        was_training=False,
    )
    return opened, trained.trajectory
