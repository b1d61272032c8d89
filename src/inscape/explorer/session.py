"""The session: what a page asks for, answered for one subject."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

from inscape.explorer import requests as ask
from inscape.explorer.attribution import made_by
from inscape.explorer.cells import cell_arrays, cut_in_time
from inscape.explorer.colours import cell_colours
from inscape.explorer.details import cell_details, point_details, similar_gradients
from inscape.explorer.examples import examples_in, image_grid, thumbnails
from inscape.explorer.jobs import Job
from inscape.explorer.planes import ExploredPlane, default_rows, kinds_of, plane_through
from inscape.explorer.raster import raster
from inscape.explorer.segments import segment
from inscape.explorer.subject import ExploredNetwork, ExploredSubject
from inscape.explorer.views import View, Views
from inscape.explorer.wire import Array

Facts = dict[str, Any]
Arrays = dict[str, Array]
Answer = Generator[None, None, tuple[Facts, Arrays]]

#: Planes that are kept ready.
PLANES = 32
#: Fraction of the first window below which float64 cannot tell points apart.
SMALLEST = 1e-10


class Session:
    """Answers requests about one subject; every answer is facts and arrays.

    ``results`` is the folder of the records that the labs and the pages of papers read.
    """

    def __init__(self, subject: ExploredSubject, *, results: Path = Path("results")) -> None:
        self.subject = subject
        self.results = results
        self.views = Views()
        self._planes: dict[tuple[object, ...], ExploredPlane] = {}

    def about(self) -> Facts:
        """Return what the page shows before it asks for a window."""
        subject, network = self.subject, self.subject.network()
        kinds = kinds_of(subject)
        return {
            "title": subject.title,
            "data": subject.data.name,
            "task": subject.task,
            "competing": subject.is_competing,
            "classes": [subject.class_name(k) for k in range(self._classes())],
            "shape": list(subject.x.shape[1:]),
            "image": image_grid(subject),
            "examples": len(subject.x),
            "exact": network.net is not None,
            "refusal": network.refusal,
            "units": [] if network.net is None else [op.place for op in network.net.ops],
            "planes": kinds,
            "rows": [] if kinds == ["whole"] else list(default_rows(subject)),
            "other": subject.other_title,
            "steps": subject.steps,
            "code": subject.code,
            "smallest": SMALLEST,
        }

    def _classes(self) -> int:
        outputs = self.subject.subject.probe.outputs
        return max(2, outputs) if self.subject.is_competing else outputs

    def plane(self, query: ask.PlaneRequest) -> Answer:
        """Answer with a plane: its first window, the examples it goes through and those near it."""
        yield
        plane = self.plane_of(query)
        at = plane.frame.of(self.subject.x[list(plane.rows)].detach().cpu()) if plane.rows else None
        facts, arrays = examples_in(self.subject, plane)
        anchors = [
            {"row": row, "u": float(at[k, 0]), "v": float(at[k, 1]),
             "label": self.subject.label(row)}
            for k, row in enumerate(plane.rows) if at is not None
        ]  # fmt: skip
        return {
            **facts,
            "centre": list(plane.centre),
            "half": list(plane.half),
            "anchors": anchors,
            "rows": list(plane.rows),
            "found": plane.adversarial,
            "code": plane.code,
        }, arrays

    def raster(self, query: ask.RasterRequest) -> Answer:
        """Answer with the raster of a window."""
        network, plane = self._network_in_plane(query)
        return (
            yield from raster(
                self.subject, network, plane, centre=query.centre, half=query.half,
                width=query.width, height=query.height, seconds=query.seconds,
            )
        )  # fmt: skip

    def cells(self, query: ask.CellsRequest, job: Job) -> Answer:
        """Answer with the exact regions of a window, and keep them for questions about cells."""
        network, plane = self._network_in_plane(query)
        regions = yield from cut_in_time(
            network, plane, centre=query.centre, half=query.half, regions=query.regions,
            seconds=query.seconds, side=query.side, on_layer=job.reached,
        )  # fmt: skip
        facts, arrays = cell_arrays(self.subject, regions, query.half)
        view = View(client=query.client, network=network, plane=plane, regions=regions)
        window = {"centre": list(query.centre), "half": list(query.half)}
        return {**facts, **window, "view": self.views.keep(view)}, arrays

    def cell(self, query: ask.CellRequest) -> Answer:
        """Answer with what is known of one cell."""
        yield
        view = self.views.get(query.view, query.client)
        return cell_details(self.subject, view.network, view.regions, query.cell), {}

    def colours(self, query: ask.ColoursRequest) -> Answer:
        """Answer with colours of the cells of a window."""
        yield
        view = self.views.get(query.view, query.client)
        like = None if query.like is None else self.views.get(query.like, query.client).regions
        return {"view": query.view}, {"rgb": cell_colours(view.regions, query.by, like)}

    def figure(self, query: ask.FigureRequest) -> Answer:
        """Answer with the figure of a window, drawn by the library."""
        from inscape.explorer.window_figure import window_figure

        yield
        view = self.views.get(query.view, query.client)
        data = window_figure(
            self.subject, view.regions, colour=query.colour, edges=query.edges,
            format=query.format, title=self.subject.title,
        )  # fmt: skip
        return {"bytes": len(data)}, {"file": np.frombuffer(data, np.uint8)}

    def saved(self, query: ask.SavedRequest) -> Answer:
        """Answer with a window as one file to send."""
        from inscape.explorer.saved_slice import saved_slice

        page, facts = yield from saved_slice(self, query)
        return facts, {"file": np.frombuffer(page, np.uint8)}

    def point(self, query: ask.PointRequest) -> Answer:
        """Answer with what is known of one point."""
        network, plane = self._network_in_plane(query)
        facts = yield from point_details(self.subject, network, plane, *query.at)
        return facts, {}

    def similar(self, query: ask.PointRequest) -> Answer:
        """Answer with the training examples whose gradients are most similar at one point."""
        return (yield from similar_gradients(self.subject, self.plane_of(query), *query.at)), {}

    def made_by(self, query: ask.MadeByRequest) -> Answer:
        """Answer with what every training example has added to the answer at one point."""
        return (yield from made_by(self.subject, self.plane_of(query), *query.at)), {}

    def segment(self, query: ask.SegmentRequest) -> Answer:
        """Answer with the network along a segment."""
        network, plane = self._network_in_plane(query)
        return (
            yield from segment(self.subject, network, plane, query.begin, query.end, seconds=10.0)
        )

    def examples(self, query: ask.ExamplesRequest) -> Answer:
        """Answer with small pictures of examples."""
        yield
        return thumbnails(self.subject, list(query.rows), train=query.train)

    def _network_in_plane(self, query: ask.PlaneRequest) -> tuple[ExploredNetwork, ExploredPlane]:
        return self.subject.network(query.network, query.step), self.plane_of(query)

    def plane_of(self, query: ask.PlaneRequest) -> ExploredPlane:
        """Return the plane of a request, made only once."""
        key = (query.kind, query.rows, query.seed)
        plane = self._planes.get(key)
        if plane is None:
            plane = plane_through(self.subject, query.kind, query.rows, query.seed)
            if len(self._planes) >= PLANES:
                self._planes.clear()
            self._planes[key] = plane
        return plane
