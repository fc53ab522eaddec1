// What the user says of the suggestions for a unit: docs/report.md, "Was this helpful?".

import type { Api, Identity, Query, Unit } from "./api";

export const kAnswers = ["yes", "no", "not_applicable"] as const;
export type Answer = (typeof kAnswers)[number];
/** By rule, of the suggestions that can be answered; null: not answered. */
export type Answers = ReadonlyMap<string, Answer | null>;

/** The server takes answers of the owner and of leads of the project. */
export function mayAnswer(identity: Identity, unit: Unit): boolean {
  return unit.username === identity.user || (identity.led ?? []).some((led) => led.cluster_id === unit.cluster_id && led.project === unit.project);
}

function runOf(unit: Unit): Query {
  const query: Query = [
    ["cluster_id", unit.cluster_id ?? ""],
    ["uuid", unit.uuid],
  ];
  if (unit.started_at_ts) query.push(["start", String(unit.started_at_ts)]);
  return query;
}

export async function readAnswers(api: Api, unit: Unit, signal: AbortSignal): Promise<Answers> {
  const { data } = await api.get<{ rule: string; answer: string | null }[]>("units/feedback", runOf(unit), signal);
  return new Map((Array.isArray(data) ? data : []).map(({ rule, answer }) => [rule, kAnswers.find((one) => one === answer) ?? null]));
}

export async function giveAnswer(api: Api, unit: Unit, rule: string, answer: Answer): Promise<void> {
  const body = new Blob([JSON.stringify({ rule, answer })], { type: "application/json" });
  await api.ask<null>(`api/v1/units/feedback?${new URLSearchParams(runOf(unit) as [string, string][])}`, { method: "POST", body });
}
