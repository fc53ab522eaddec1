// The state of the overview in the address.

import { kViews, type View } from "../../data/api";
import { oneOf } from "../../data/liststate";
import { readPeriod, writePeriod, type Period } from "../../data/period";
import { kGroupings, type Grouping } from "../../data/usage";

export interface OverviewState {
  view: View | null;
  period: Period;
  by: Grouping;
}

export function defaultOverview(): OverviewState {
  return { view: null, period: { kind: "month", back: 0 }, by: "component" };
}

export function readOverview(query: URLSearchParams): OverviewState {
  const overview = defaultOverview();
  overview.view = oneOf(query.get("view"), kViews);
  overview.period = readPeriod(query) ?? overview.period;
  overview.by = oneOf(query.get("by"), kGroupings) ?? overview.by;
  return overview;
}

export function writeOverview({ view, period, by }: OverviewState): string {
  const query = new URLSearchParams();
  if (view !== null) query.set("view", view);
  if (!(period.kind === "month" && period.back === 0)) writePeriod(period, query, true);
  if (by !== "component") query.set("by", by);
  return query.size ? `#/?${query}` : "#/";
}
