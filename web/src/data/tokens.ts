// Personal API tokens of the user.

import type { Api } from "./api";

export type TokenScope = "read-own" | "read-led";

export interface Token {
  id: string;
  name: string;
  scope: TokenScope;
  created_ts: number; // ms
  expires_ts: number;
  used_ts: number | null; // to the hour; null: never
}

/** The days after which a token can expire; the first is what the page offers. */
export const kTokenDays = [90, 7, 30, 180, 365] as const;

export async function listTokens(api: Api, signal?: AbortSignal): Promise<Token[]> {
  const { data } = await api.get<Token[]>("tokens", [], signal);
  return Array.isArray(data) ? data : [];
}

/** The secret of a new token, which the server does not show again. */
export async function makeToken(api: Api, name: string, scope: TokenScope, days: number): Promise<string> {
  const body = new Blob([JSON.stringify({ name, scope, days })], { type: "application/json" });
  const { data } = await api.ask<Token & { token: string }>("api/v1/tokens", { method: "POST", body });
  return data?.token ?? "";
}

export async function revokeToken(api: Api, id: string): Promise<void> {
  await api.ask<null>(`api/v1/tokens?${new URLSearchParams({ id })}`, { method: "DELETE" });
}

/** As the server accepts it: 1 to 100 bytes without control characters; null if the text is none. */
export function tokenName(text: string): string | null {
  const name = text.trim();
  return name !== "" && !/[\x00-\x1f\x7f]/.test(name) && new TextEncoder().encode(name).length <= 100 ? name : null;
}
