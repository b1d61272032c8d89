"""``inscape look``: measure a model in every way that applies and write its report."""

from pathlib import Path

from inscape.cli import options as opt
from inscape.cli.boolean import look_boolean
from inscape.cli.looking import look_at_model


def look(
    model: opt.Model = None,
    boolean: opt.Boolean = None,
    weights: opt.Weights = None,
    take: opt.Take = None,
    embedding: opt.Embedding = None,
    trajectory: opt.RecordedTraining = None,
    trust: opt.Trust = False,
    max_size: opt.MaxSize = None,
    data: opt.Data = None,
    data_dir: opt.DataDir = None,
    download: opt.Download = False,
    input_shape: opt.InputShape = None,
    scale: opt.Scale = "none",
    normalise: opt.Normalise = None,
    target: opt.Target = None,
    labels: opt.Labels = "auto",
    loss: opt.Loss = "auto",
    limit: opt.Limit = None,
    device: opt.Device = "auto",
    dtype: opt.DType = None,
    threads: opt.Threads = None,
    seed: opt.Seed = 0,
    budget: opt.Budget = 60.0,
    memory: opt.Memory = None,
    work: opt.WorkDone = None,
    only: opt.Only = None,
    explain: opt.Explain = None,
    out: opt.Out = Path("reports"),
    as_json: opt.AsJson = False,
    no_page: opt.NoPage = False,
    quiet: opt.Quiet = False,
    dry_run: opt.DryRun = False,
) -> None:
    """Measure a model in every way that applies and write its report.

    Without options it looks at a built-in example: a small network trained on the digits of
    scikit-learn. Its training is recorded, so that the report shows which images made some of its
    predictions; --trajectory does the same for a training of your own.
    """
    given = locals()  # every option by its name
    if boolean is not None:
        look_boolean(boolean, given)
    else:
        look_at_model(given)
