// All views of the page, in the order of their tabs.

import { view as slice } from "./slice.js";

export const VIEWS = [slice];
