"""Trainings by Lightning, by the Trainer of Hugging Face and by accelerate, with the packages."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import inscape
from inscape.kernels import path_kernel
from inscape.training import lightning_callback, record_training, trainer_callback
from inscape.training.callbacks import read_batch
from recorded_loops import batches, data, with_everything

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the packages


def net():
    return with_everything(torch.float32)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_training_by_lightning_is_replayed_and_split(inside, accumulate, tmp_path):
    lightning = pytest.importorskip("lightning")

    class Task(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, number):
            x, y = batch
            outputs = self.net(x) if inside else self(x)
            return nn.functional.cross_entropy(outputs, y)

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
            return {"optimizer": optimizer,
                    "lr_scheduler": {"scheduler": schedule, "interval": "step"}}  # fmt: skip

    x, y = data(torch.float32)
    callback = lightning_callback(
        loss="cross_entropy", data=(x, y), every=4, to=tmp_path / "run",
        model=(lambda task: task.net) if inside else None,
    )  # fmt: skip
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[callback],
        gradient_clip_val=0.5, accumulate_grad_batches=accumulate, default_root_dir=tmp_path,
    )  # fmt: skip
    task = Task()
    trainer.fit(task, DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True))
    run = callback.run
    assert run.notes == []
    assert run.steps == -(-5 // accumulate) * 2
    assert "replayed bit for bit" in run.verdict
    model = (task.net if inside else task).eval()
    split = path_kernel(model, x, y, trajectory=run.trajectory, queries=x[:1])
    assert split.relative_residual < 1e-10


def vit():
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        image_size=6, patch_size=3, num_channels=1, num_labels=3,
        hidden_dropout_prob=0.1, attn_implementation="eager",
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.ViTForImageClassification(config)


class Rows(torch.utils.data.Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, k):
        return {"pixel_values": self.x[k], "labels": self.y[k]}


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_training_by_the_trainer_of_hugging_face_is_replayed(accumulate, tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    x, y = data(torch.float32)
    model = vit()
    adapted = inscape.adapt(model, take="logits", inputs="pixel_values")
    callback = trainer_callback(
        loss="cross_entropy", data=(x, y), model=adapted, every=3, to=tmp_path / "run"
    )
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), num_train_epochs=2, per_device_train_batch_size=10,
        gradient_accumulation_steps=accumulate, report_to=[], use_cpu=True, save_strategy="no",
        learning_rate=0.001, weight_decay=0.1, disable_tqdm=True,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model=model, args=arguments, train_dataset=Rows(x, y), callbacks=[callback]
    )
    trainer.train()
    run = callback.run
    assert run.notes == []
    assert len(run.trajectory.loop.groups) == 2  # with and without decay
    assert "replayed" in run.verdict
    assert run.trajectory.loop.replayable
    split = path_kernel(
        adapted.eval(), x, y, trajectory=run.trajectory, queries=x[:1], mode="first-order"
    )
    assert split.relative_rounding < 1e-2  # its updates are those of the gradients of its samples
    assert split.relative_residual < 0.5  # of long steps, to first order


def test_a_loop_of_accelerate_is_replayed(tmp_path):
    accelerate = pytest.importorskip("accelerate")
    x, y = data(torch.float32)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    bare = net()
    model, optimizer = accelerator.prepare(bare, torch.optim.AdamW(bare.parameters(), lr=0.01))
    with record_training(
        model, optimizer, loss="cross_entropy", data=(x, y), every=3, to=tmp_path / "run",
        accumulate=2,
    ) as run:  # fmt: skip
        for rows in batches(12):
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                optimizer.zero_grad()
            run.step(x[rows], y[rows])
    assert run.notes == []
    assert run.steps == 6
    assert "replayed bit for bit" in run.verdict


def test_batches_are_read_and_strange_ones_refused():
    x, y = data()
    assert read_batch((x, y)) == (x, y)
    inputs, labels = read_batch({"labels": y, "pixel_values": x})
    assert inputs is x
    assert labels is y
    with pytest.raises(TypeError, match=r"found str: pass batch=\.\.\. that returns a pair"):
        read_batch("a batch")


@pytest.mark.parametrize(
    ("make", "module", "text"),
    [
        (lightning_callback, "lightning.pytorch", "a callback for Lightning needs the package"),
        (trainer_callback, "transformers", "a callback for the Trainer needs the package"),
    ],
)
def test_a_missing_package_is_named(make, module, text, monkeypatch):
    for name in (module, "pytorch_lightning"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(ImportError, match=text):
        make(loss="mse")
