// What would help the next run of a kind: from the report of the run that has the suggestion.

import { pathOf, type Api, type Identity } from "../data/api";
import { widestView } from "../data/identity";
import type { UnitKind } from "../data/unitkinds";
import { currentLanguage, isKey, t, type Key } from "../text/i18n";
import { readReport, reportQuery, type Suggestion } from "./unit/report";

/** The first sentence: dots within numbers and behind short words end none. */
export const firstSentence = (text: string): string => /^.*?[\p{L}\d)%]{3,}[.!?](?=\s\p{Lu})/u.exec(text)?.[0] ?? text;

export class KindAdvice {
  #found = $state.raw<ReadonlyMap<string, Suggestion>>(new Map());
  #asked = new Set<string>();

  constructor(
    private readonly api: Api,
    private readonly identity: Identity,
  ) {}

  /** One report after the other, each once. A report that cannot be had leaves the name of the rule. */
  async load(kinds: readonly UnitKind[], signal: AbortSignal): Promise<void> {
    for (const { cluster, finding } of kinds) {
      if (finding === null || signal.aborted) continue;
      const key = keyOf(cluster, finding);
      if (this.#asked.has(key)) continue;
      this.#asked.add(key);
      const unit = { cluster_id: cluster, uuid: finding.uuid, started_at_ts: finding.started };
      try {
        const report = readReport((await this.api.get<unknown>(pathOf("units/report", widestView(this.identity)), reportQuery(unit, currentLanguage(), false), signal)).data);
        const suggestion = report?.suggestions.find((one) => one.rule === finding.rule);
        if (suggestion) this.#found = new Map(this.#found).set(key, suggestion);
      } catch {
        if (signal.aborted) this.#asked.delete(key);
      }
    }
  }

  /** The suggestion in one sentence, with the line to type where there is one. */
  of({ cluster, finding }: UnitKind): { text: string; line: string | null } | null {
    if (finding === null) return null;
    const suggestion = this.#found.get(keyOf(cluster, finding));
    if (suggestion) return { text: firstSentence(suggestion.text), line: suggestion.lines[0]?.type ?? null };
    const name = `rule.${finding.rule}`;
    return { text: isKey(name) ? t(name as Key) : finding.rule, line: null }; // a rule of the site has its identifier
  }
}

const keyOf = (cluster: string, { uuid, started }: { uuid: string; started: number }): string => `${cluster}/${uuid}/${started}`;
