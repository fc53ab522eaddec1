// The parts of the REST API of ceems_api_server that the page uses.

import { t } from "../text/i18n";

export type MetricMap = Record<string, number>;

export interface Unit {
  cluster_id?: string;
  resource_manager?: string;
  uuid: string;
  name?: string;
  project?: string;
  groupname?: string;
  username?: string;
  created_at_ts?: number; // ms since 1970; absent: unknown
  started_at_ts?: number; // ms; absent: not started
  ended_at_ts?: number; // ms; absent: still running
  elapsed?: string;
  state?: string;
  allocation?: Record<string, unknown>;
  total_time_seconds?: MetricMap;
  avg_cpu_usage?: MetricMap; // percent of the allocation
  avg_cpu_mem_usage?: MetricMap;
  total_cpu_energy_usage_kwh?: MetricMap;
  total_gpu_energy_usage_kwh?: MetricMap;
  avg_gpu_usage?: MetricMap;
  avg_gpu_mem_usage?: MetricMap;
  total_cpu_emissions_gms?: MetricMap;
  total_gpu_emissions_gms?: MetricMap;
  // Metrics that the site defines itself, by its names.
  total_custom_stats?: MetricMap;
  avg_custom_stats?: MetricMap;
  min_custom_stats?: MetricMap;
  max_custom_stats?: MetricMap;
  tags?: Record<string, unknown>;
}

/** A template: {uuid}, {cluster}, {user}, {project}, {from_ms} and {to_ms} stand for what they are of the unit. */
export interface UnitLink {
  name: string;
  url: string;
  clusters: string[]; // empty: all
}

/** What the site says of itself; older servers only have links. */
export interface Site {
  unit_links: UnitLink[];
  name?: string;
  currency?: string;
  help_url?: string;
  unit_word?: string; // what it calls units
  pue?: number | null;
  version?: string;
  time_zone?: string;
  clusters?: SiteCluster[];
  tokens?: boolean; // people can make tokens
}

/** A configured cluster. */
export interface SiteCluster {
  id: string;
  manager: string;
  series: boolean; // it has measurements over time
  nodes: boolean;
  gpus: boolean;
  updated?: number | null; // ms: to when its data was read
}

export interface Series {
  name: string;
  unit: string;
  points: [ms: number, value: number | null][];
  labels?: Record<string, string>; // what the line is of
  limit?: number; // what was reserved
  none?: "not_collected" | "too_short"; // why the chart is empty
  collector?: string; // what would measure it
}

/** As units/profile answers: nodes by depth, each within its parent. */
export interface Profile {
  state: "profile" | "empty" | "none"; // "none": the cluster has no profile server
  from: number; // ms
  to: number;
  total: number; // nanoseconds of CPU time
  left_out: number; // small nodes that were not sent
  names: string[];
  levels: [start: number, total: number, self: number, name: number][][];
}

/** Least privileged first. The server decides about access; the page only offers what the role may request. */
export type Role = "nobody" | "user" | "project_lead" | "support" | "admin";

/** The login methods of the server. */
export interface Login {
  header: string | null; // header that every client may send to name its user; null: the server ignores it
  local: boolean; // name and password
  oidc: string | null; // name of the provider
  site: string; // name of the site; empty: it has none
  token: string; // required in forms of this browser
}

export interface Identity {
  user: string;
  admin: boolean;
  role?: Role;
  via?: "header" | "local" | "oidc" | "token";
  led?: { cluster_id: string; project: string }[];
  login?: Login;
}

/** Which units: the user's own, the units of led projects, both, or all. */
export type View = "own" | "led" | "mine" | "all";
export const kViews: readonly View[] = ["own", "led", "mine", "all"];

/** An error with a message for users; `status` is 0 if there was no response. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly login: Login | null = null, // with 401, from servers that have logins
  ) {
    super(message);
  }
}

/** What went wrong, in words and with the status of the answer. */
export const failureOf = (error: unknown): ApiError => (error instanceof ApiError ? error : new ApiError(0, String(error)));
/** In a sentence: what went wrong. */
export const wordsOf = (error: unknown): string => failureOf(error).message;

interface Envelope {
  status: string;
  data: unknown;
  next?: string;
  previous?: string;
  error?: string;
  warnings?: string[];
  missing?: Missing[];
  login?: Login;
}

/** A cluster that a list lacks: it has no TSDB, or its TSDB did not respond. */
export interface Missing {
  cluster_id: string;
  reason: "no_tsdb" | "unavailable";
}

export interface Answer<T> {
  login: Login | null; // of servers that have logins, while the user is logged out
  data: T;
  next: string | null; // cursor of the next page
  previous: string | null;
  warnings: string[];
  missing: Missing[];
  serverTime: number; // ms, clock of the server
}

export type Query = [key: string, value: string][];

/** Everybody's units have an endpoint of their own. */
export function pathOf(endpoint: string, view: View): string {
  return view === "all" ? `${endpoint}/admin` : endpoint;
}

export function scopeOf(view: View): Query {
  return view === "own" || view === "led" ? [["scope", view]] : [];
}

const kTimeoutMs = 20_000;

/** Root of the server: the page is at "<root>" or below "<root>ui/". */
export function serverRoot(location: { origin: string; pathname: string }): string {
  const path = location.pathname;
  const ui = path.search(/\/ui(\/|$)/);
  const folder = ui >= 0 ? path.slice(0, ui + 1) : path.slice(0, path.lastIndexOf("/") + 1);
  return location.origin + folder;
}

export class Api {
  /** Called when the server no longer recognises the user. */
  onstranger: (() => void) | null = null;

  /** `user` is sent in the header if no proxy in front of the server names the user. */
  constructor(
    private readonly root: string,
    readonly user: string | null = null,
    private readonly fetcher: typeof fetch = (input, init) => fetch(input, init),
    private readonly header = "X-Grafana-User",
  ) {}

  /** The address of a request, for links. */
  address(path: string, query: Query): string {
    return `${this.root}api/v1/${path}${query.length ? `?${new URLSearchParams(query)}` : ""}`;
  }

  /** `data` is T, or missing where the server has nothing. */
  async get<T>(path: string, query: Query = [], signal?: AbortSignal): Promise<Answer<T | null>> {
    return this.ask<T>(this.address(path, query).slice(this.root.length), {}, signal);
  }

  /** A list, empty where the server has nothing. */
  private async getList<T>(path: string, query: Query = [], signal?: AbortSignal): Promise<Answer<T[]>> {
    const answer = await this.get<T[]>(path, query, signal);
    return { ...answer, data: Array.isArray(answer.data) ? answer.data : [] };
  }

  /** A file as the server sends it, for users whose name a link could not carry. */
  async file(path: string, query: Query): Promise<Blob> {
    const headers = new Headers();
    if (this.user !== null) headers.set(this.header, this.user);
    let response: Response;
    try {
      response = await this.fetcher(this.address(path, query), { headers, credentials: "same-origin" });
    } catch {
      throw new ApiError(0, t("api.unreachable"));
    }
    if (!response.ok) throw new ApiError(response.status, sentence(response.status, undefined));
    return response.blob();
  }

  /** A request as it is, below the root. A body in JSON is a Blob of that type. */
  async ask<T>(path: string, init: RequestInit, signal?: AbortSignal): Promise<Answer<T | null>> {
    const headers = new Headers({ Accept: "application/json" });
    if (this.user !== null) headers.set(this.header, this.user);
    const url = this.root + path;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), kTimeoutMs);
    const stop = () => timeout.abort();
    signal?.addEventListener("abort", stop);
    try {
      // The browser keeps answers and asks with their entity tags, so what has not changed is not sent again.
      const response = await this.fetcher(url, { ...init, headers, signal: timeout.signal, credentials: "same-origin" });
      const text = await response.text();
      let body: Envelope | null = null;
      try {
        body = JSON.parse(text) as Envelope;
      } catch {
        // The error page of a proxy, or a text/plain error of the server: the status describes it.
      }
      if (!response.ok || body === null || typeof body !== "object" || body.status !== "success") {
        throw new ApiError(response.status, sentence(response.status, body?.error), readLogin(body?.login));
      }
      const date = Date.parse(response.headers.get("Date") ?? "");
      return {
        login: readLogin(body.login),
        data: (body.data ?? null) as T | null,
        next: typeof body.next === "string" && body.next !== "" ? body.next : null,
        previous: typeof body.previous === "string" && body.previous !== "" ? body.previous : null,
        warnings: body.warnings ?? [],
        missing: body.missing ?? [],
        serverTime: Number.isNaN(date) ? Date.now() : date,
      };
    } catch (error) {
      if (error instanceof ApiError) {
        if (error.status === 401 && path !== "login") this.onstranger?.();
        throw error;
      }
      if (signal?.aborted) throw error;
      throw new ApiError(0, timeout.signal.aborted ? t("api.timeout", { n: kTimeoutMs / 1000 }) : t("api.unreachable"));
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Throws an ApiError of status 401 for unknown callers. Asked this way, the server itself answers them with 200, because
   * browsers report every 401 as an error of the page. */
  async whoami(signal?: AbortSignal): Promise<Identity> {
    const answer = await this.getList<Identity>("whoami", [["anonymous", "true"]], signal);
    const first = answer.data[0];
    if (!first) throw new ApiError(401, sentence(401, undefined), answer.login);
    return first;
  }

  /** Starts a session, which the browser keeps in a cookie. */
  async logIn(user: string, password: string, token: string): Promise<void> {
    try {
      await this.post("login", { user, password, token });
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) throw new ApiError(401, t("api.password"));
      if (error instanceof ApiError && error.status === 429) throw new ApiError(429, t("api.attempts"));
      throw error;
    }
  }

  async logOut(token: string): Promise<void> {
    await this.post("logout", { token });
  }

  private async post(path: string, fields: Record<string, string>): Promise<void> {
    await this.ask<never>(path, { method: "POST", body: new URLSearchParams(fields) });
  }

  /** What the page shows of this site. Servers before this version have no such endpoint. */
  async site(signal?: AbortSignal): Promise<Answer<Site>> {
    const answer = await this.getList<Site>("site", [], signal);
    return { ...answer, data: answer.data[0] ?? { unit_links: [] } };
  }

  units(view: View, query: Query, signal?: AbortSignal): Promise<Answer<Unit[]>> {
    return this.getList<Unit>(pathOf("units", view), [...query, ...scopeOf(view)], signal);
  }

  /** Where a unit spent CPU time between two moments, at most a day before the second. */
  async profile(unit: Unit, from: number, to: number, signal?: AbortSignal): Promise<Profile> {
    const query: Query = [["uuid", unit.uuid], ["from", String(Math.floor(from / 1000))], ["to", String(Math.ceil(to / 1000))]];
    if (unit.cluster_id) query.unshift(["cluster_id", unit.cluster_id]);
    const { data } = await this.get<Profile>("units/profile", query, signal);
    return data ?? { state: "none", from, to, total: 0, left_out: 0, names: [], levels: [] };
  }

  /** What a unit did between two moments: the charts of these names, by a line for each GPU, node or component, or one for the unit. */
  series(unit: Unit, from: number, to: number, charts: readonly string[], by: "sum" | "gpu" | "node" | "component", signal?: AbortSignal, agg: "" | "bins" | "mean" = ""): Promise<Answer<Series[]>> {
    const query: Query = [
      ["uuid", unit.uuid],
      ["metric", charts.join(",")],
      ["by", by],
      ["from", String(Math.floor(from / 1000))],
      ["to", String(Math.ceil(to / 1000))],
    ];
    if (agg) query.push(["agg", agg]); // few points of thousands of lines, or one
    if (unit.cluster_id) query.unshift(["cluster_id", unit.cluster_id]);
    return this.getList<Series>("units/series", query, signal);
  }
}

/** The login methods in a response, or null if a server or proxy sent something else. */
export function readLogin(value: unknown): Login | null {
  if (typeof value !== "object" || value === null) return null;
  const { header, local, oidc, site, token } = value as Record<string, unknown>;
  const text = (v: unknown) => (typeof v === "string" && v !== "" ? v : null);
  return { header: text(header), local: local === true, oidc: text(oidc), site: text(site) ?? "", token: text(token) ?? "" };
}

function sentence(status: number, error: string | undefined): string {
  if (status === 401) return t("api.401");
  if (status === 403) return error ?? t("api.403");
  if (status === 429) return t("api.429");
  if (error) return error;
  if (status === 200) return t("api.400");
  return t("api.status", { status: String(status) });
}
