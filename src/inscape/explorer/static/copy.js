// Copies of what is shown: as a picture (SVG), as data (CSV), as Python that makes the same.

import { area, centroid, polygon } from "./geometry.js";
import { rebasing } from "./window.js";
import { css } from "./colours.js";

const SIDE = 1000;

/** Return a window as SVG: cells, boundary and points; colours are four bytes a polygon. */
export function svgOf({ cells, pieces, boundary, colours, window, aspect, ink, paper, points, edges = [] }) {
  const size = { width: SIDE * aspect, height: SIDE };
  const { scale, shift } = rebasing(cells, window, size);
  const px = (x, y) => {
    const a = ((x * scale[0] + shift[0] + 1) / 2) * size.width;
    const b = ((1 - (y * scale[1] + shift[1])) / 2) * size.height;
    return `${+a.toFixed(2)},${+b.toFixed(2)}`;
  };
  const fill = (i) => css([colours[4 * i], colours[4 * i + 1], colours[4 * i + 2]]);
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${+size.width.toFixed(2)} ${SIDE}">`,
    `<rect width="100%" height="100%" fill="${css(paper)}"/>`,
    `<g stroke="${css(ink)}" stroke-opacity="0.4" stroke-width="0.8" stroke-linejoin="round">`,
  ];
  for (let i = 0; i + 1 < cells.first.length; i += 1) {
    const places = polygon(cells, i).map(([x, y]) => px(x, y));
    lines.push(`<polygon points="${places.join(" ")}" fill="${fill(i)}"/>`);
  }
  lines.push("</g>");
  if (pieces) {
    lines.push("<g>");
    for (let i = 0; i + 1 < pieces.first.length; i += 1) {
      const places = [];
      for (let k = pieces.first[i]; k < pieces.first[i + 1]; k += 1) {
        places.push(px(pieces.vertices[2 * k], pieces.vertices[2 * k + 1]));
      }
      const colour = fill(cells.first.length - 1 + i);
      lines.push(`<polygon points="${places.join(" ")}" fill="${colour}"/>`);
    }
    lines.push("</g>");
  }
  if (boundary) {
    lines.push(`<g fill="none" stroke="${css(ink)}" stroke-width="2.5" stroke-linejoin="round">`);
    for (let line = 0; line + 1 < boundary.first.length; line += 1) {
      const places = [];
      for (let k = boundary.first[line]; k < boundary.first[line + 1]; k += 1) {
        places.push(px(boundary.points[2 * k], boundary.points[2 * k + 1]));
      }
      lines.push(`<polyline points="${places.join(" ")}"/>`);
    }
    lines.push("</g>");
  }
  for (const [ends, dash] of edges) {
    const places = [];
    for (let k = 0; k < ends.length; k += 1) {
      const place = px(cells.vertices[2 * ends[k]], cells.vertices[2 * ends[k] + 1]);
      places.push(`${k % 2 ? "L" : "M"}${place}`);
    }
    lines.push(`<path d="${places.join("")}" fill="none" stroke="${css(ink)}" stroke-width="2.5" stroke-dasharray="${dash}"/>`);
  }
  for (const point of points ?? []) {
    lines.push(
      `<circle cx="${+point.x.toFixed(2)}" cy="${+point.y.toFixed(2)}" r="5" ` +
        `fill="${css(point.colour)}" stroke="${css(ink)}"/>`,
    );
  }
  lines.push("</svg>");
  return lines.join("\n");
}

/** Return the cells of a cut as CSV: where each lies in the plane, how large it is, its answer. */
export function csvOf({ cells, facts, arrays, names }) {
  const rows = ["cell,u,v,area,corners,answer,confidence"];
  for (let i = 0; i + 1 < cells.first.length; i += 1) {
    const places = polygon(cells, i);
    const [x, y] = centroid(places);
    const answer = arrays.value ? arrays.value[i] : quoted(names[arrays.classes[i]]);
    rows.push(
      [
        i,
        cells.centre[0] + x * cells.half[0],
        cells.centre[1] + y * cells.half[1],
        area(places) * facts.unitArea,
        places.length,
        answer,
        arrays.confidence ? (arrays.confidence[i] / 255).toFixed(3) : "",
      ].join(","),
    );
  }
  return rows.join("\n") + "\n";
}

/** Return a cell of a CSV. */
export function quoted(text) {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Return Python that cuts the same window, of the network at a recorded step if one is named. */
export function pythonOf(session, plane, centre, half, step = -1) {
  const [hx, hy] = half;
  const corners = [[-hx, -hy], [hx, -hy], [hx, hy], [-hx, hy]];
  return [
    session.code,
    plane.code,
    ...(step >= 0 ? [`model.load_state_dict(opened.trajectory.at(${step}))`] : []),
    `centre = torch.tensor([[${centre[0]}, ${centre[1]}]], dtype=torch.float64)`,
    "plane = inscape.regions.Frame(origin=plane.at(centre)[0], axes=plane.axes)",
    `domain = torch.tensor(${JSON.stringify(corners)}, dtype=torch.float64)`,
    "regions = inscape.regions.plane_regions(model, x[:3], plane=plane, domain=domain)",
    "print(regions)",
    'regions.save("regions.svg")',
    "",
  ].join("\n");
}

/** Return the cells of two networks as CSV: where, how large, both answers, how far apart. */
export function pairCsvOf({ cells, facts, arrays, names }) {
  const rows = ["cell,u,v,area,answer,other_answer,largest_distance"];
  for (let i = 0; i + 1 < cells.first.length; i += 1) {
    const places = polygon(cells, i);
    const [x, y] = centroid(places);
    rows.push([
      i, cells.centre[0] + x * cells.half[0], cells.centre[1] + y * cells.half[1],
      area(places) * facts.unitArea, quoted(names[arrays.classes[i]]),
      quoted(names[arrays.otherClasses[i]]), arrays.differences[i],
    ].join(","));
  }
  return rows.join("\n") + "\n";
}

/** Return Python that compares both networks in the same window. */
export function pairPythonOf(session, plane, centre, half) {
  const lines = pythonOf(session, plane, centre, half).split("\n");
  const cut = lines.findIndex((line) => line.startsWith("regions = "));
  return [
    ...lines.slice(0, 1), ...session.code.split("\n").slice(1), session.views.pair.code,
    ...lines.slice(session.code.split("\n").length, cut),
    "both = inscape.similarity.slice_difference(",
    "    model, x[:3], other=other, plane=plane, domain=domain\n)",
    "print(both, both.area)",
    'both.save("difference.svg")',
    "",
  ].join("\n");
}
