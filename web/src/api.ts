// The REST API of ceems_api_server, as far as the page uses it.

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
  tags?: Record<string, unknown>;
}

export interface Series {
  name: string;
  unit: string;
  points: [ms: number, value: number | null][];
}

/** Weakest first; the server decides, the page only offers what the role may ask for. */
export type Role = "nobody" | "user" | "project_lead" | "support" | "admin";

/** How people can say who they are. */
export interface Login {
  header: string | null; // header that everybody may send; null: a name in a header is not believed
  local: boolean; // name and password
  oidc: string | null; // name of the provider
  token: string; // what forms of this browser must carry
}

export interface Identity {
  user: string;
  admin: boolean;
  role?: Role;
  via?: "header" | "local" | "oidc";
  led?: { cluster_id: string; project: string }[];
  login?: Login;
}

/** Whose units: own ones, those of projects one leads, both, or everybody's. */
export type View = "own" | "led" | "mine" | "all";

/** What went wrong, in words for people; `status` is 0 where no answer came at all. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly login: Login | null = null, // with 401, from servers that have logins
  ) {
    super(message);
  }
}

interface Envelope {
  status: string;
  data: unknown[] | null;
  error?: string;
  warnings?: string[];
  login?: Login;
}

export interface Answer<T> {
  data: T[];
  warnings: string[];
  serverTime: number; // ms, by the server's clock
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
  /** Called when the server no longer knows who asks. */
  onstranger: (() => void) | null = null;

  /** `user` is sent in the header where no proxy in front of the server says who asks. */
  constructor(
    private readonly root: string,
    readonly user: string | null = null,
    private readonly fetcher: typeof fetch = (input, init) => fetch(input, init),
    private readonly header = "X-Grafana-User",
  ) {}

  async get<T>(path: string, query: [string, string][] = [], signal?: AbortSignal): Promise<Answer<T>> {
    return this.ask<T>(`api/v1/${path}${query.length ? `?${new URLSearchParams(query)}` : ""}`, {}, signal);
  }

  private async ask<T>(path: string, init: RequestInit, signal?: AbortSignal): Promise<Answer<T>> {
    const headers = new Headers({ Accept: "application/json" });
    if (this.user !== null) headers.set(this.header, this.user);
    const url = this.root + path;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), kTimeoutMs);
    const stop = () => timeout.abort();
    signal?.addEventListener("abort", stop);
    try {
      const response = await this.fetcher(url, { ...init, headers, signal: timeout.signal, cache: "no-store", credentials: "same-origin" });
      const text = await response.text();
      let body: Envelope | null = null;
      try {
        body = JSON.parse(text) as Envelope;
      } catch {
        // A proxy's error page, or the text/plain errors of the server: told by the status.
      }
      if (!response.ok || body === null || typeof body !== "object" || body.status !== "success") {
        throw new ApiError(response.status, sentence(response.status, body?.error), readLogin(body?.login));
      }
      const date = Date.parse(response.headers.get("Date") ?? "");
      return { data: (body.data ?? []) as T[], warnings: body.warnings ?? [], serverTime: Number.isNaN(date) ? Date.now() : date };
    } catch (error) {
      if (error instanceof ApiError) {
        if (error.status === 401 && path !== "login") this.onstranger?.();
        throw error;
      }
      if (signal?.aborted) throw error;
      throw new ApiError(0, timeout.signal.aborted ? `no answer within ${kTimeoutMs / 1000} s` : "the server cannot be reached");
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  async whoami(signal?: AbortSignal): Promise<Identity> {
    const answer = await this.get<Identity>("whoami", [], signal);
    const first = answer.data[0];
    if (!first) throw new ApiError(200, "the server did not say who asks");
    return first;
  }

  /** Begins a session, which the browser keeps in a cookie. */
  async logIn(user: string, password: string, token: string): Promise<void> {
    try {
      await this.post("login", { user, password, token });
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) throw new ApiError(401, "user name or password is wrong");
      if (error instanceof ApiError && error.status === 429) throw new ApiError(429, "too many attempts; try again in a quarter of an hour");
      throw error;
    }
  }

  async logOut(token: string): Promise<void> {
    await this.post("logout", { token });
  }

  private async post(path: string, fields: Record<string, string>): Promise<void> {
    await this.ask<never>(path, { method: "POST", body: new URLSearchParams(fields) });
  }

  units(view: View, query: [string, string][], signal?: AbortSignal): Promise<Answer<Unit>> {
    const scope: [string, string][] = view === "own" || view === "led" ? [["scope", view]] : [];
    return this.get<Unit>(view === "all" ? "units/admin" : "units", [...query, ...scope], signal);
  }

  series(unit: Unit, from: number, to: number, signal?: AbortSignal): Promise<Answer<Series>> {
    const query: [string, string][] = [
      ["uuid", unit.uuid],
      ["from", String(Math.floor(from / 1000))],
      ["to", String(Math.ceil(to / 1000))],
    ];
    if (unit.cluster_id) query.unshift(["cluster_id", unit.cluster_id]);
    return this.get<Series>("units/series", query, signal);
  }
}

/** What a server (or a proxy) says about logins, or null when it is not what it should be. */
export function readLogin(value: unknown): Login | null {
  if (typeof value !== "object" || value === null) return null;
  const { header, local, oidc, token } = value as Record<string, unknown>;
  const text = (v: unknown) => (typeof v === "string" && v !== "" ? v : null);
  return { header: text(header), local: local === true, oidc: text(oidc), token: text(token) ?? "" };
}

function sentence(status: number, error: string | undefined): string {
  if (status === 401) return "the server does not know who asks";
  if (status === 403) return error ?? "the server refuses";
  if (status === 429) return "too many requests; the server asks for a pause";
  if (error) return error;
  if (status === 200) return "the answer is not from a CEEMS API server";
  return `the server answered with status ${status}`;
}
