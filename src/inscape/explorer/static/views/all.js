// All views of the page, in the order of their tabs.

import { view as pair } from "./pair.js";
import { view as slice } from "./slice.js";
import { view as training } from "./training.js";

export const VIEWS = [slice, training, pair];
