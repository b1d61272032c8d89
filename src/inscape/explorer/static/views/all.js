// All views of the page, in the order of their tabs.

import { view as boolean } from "./boolean.js";
import { view as pair } from "./pair.js";
import { view as papers } from "./papers.js";
import { view as slice } from "./slice.js";
import { view as toy } from "./toy.js";
import { view as training } from "./training.js";

export const VIEWS = [
  slice,
  training,
  pair,
  toy,
  boolean,
  papers,
];
