// What every page starts with.

import { findTables } from "./cells.js";
import { listen } from "./hands.js";
import { keepCurrent } from "./live.js";
import { findPlots } from "./plots.js";

findTables();
findPlots();
listen();
keepCurrent();
