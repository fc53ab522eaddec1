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

export interface Identity {
  user: string;
  admin: boolean;
}

/** What went wrong, in words for people; `status` is 0 where no answer came at all. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

interface Envelope {
  status: string;
  data: unknown[] | null;
  error?: string;
  warnings?: string[];
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
  /** `user` is sent as X-Grafana-User where no proxy in front of the server says who asks. */
  constructor(
    private readonly root: string,
    readonly user: string | null = null,
    private readonly fetcher: typeof fetch = (input, init) => fetch(input, init),
  ) {}

  async get<T>(path: string, query: [string, string][] = [], signal?: AbortSignal): Promise<Answer<T>> {
    const headers = new Headers({ Accept: "application/json" });
    if (this.user !== null) headers.set("X-Grafana-User", this.user);
    const url = `${this.root}api/v1/${path}${query.length ? `?${new URLSearchParams(query)}` : ""}`;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), kTimeoutMs);
    const stop = () => timeout.abort();
    signal?.addEventListener("abort", stop);
    try {
      const response = await this.fetcher(url, { headers, signal: timeout.signal, cache: "no-store", credentials: "same-origin" });
      const text = await response.text();
      let body: Envelope | null = null;
      try {
        body = JSON.parse(text) as Envelope;
      } catch {
        // A proxy's error page, or the text/plain errors of the server: told by the status.
      }
      if (!response.ok || body === null || typeof body !== "object" || body.status !== "success") {
        throw new ApiError(response.status, sentence(response.status, body?.error));
      }
      const date = Date.parse(response.headers.get("Date") ?? "");
      return { data: (body.data ?? []) as T[], warnings: body.warnings ?? [], serverTime: Number.isNaN(date) ? Date.now() : date };
    } catch (error) {
      if (error instanceof ApiError) throw error;
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

  units(everyone: boolean, query: [string, string][], signal?: AbortSignal): Promise<Answer<Unit>> {
    return this.get<Unit>(everyone ? "units/admin" : "units", query, signal);
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

function sentence(status: number, error: string | undefined): string {
  if (status === 401) return "the server does not know who asks";
  if (status === 403) return error ?? "the server refuses";
  if (status === 429) return "too many requests; the server asks for a pause";
  if (error) return error;
  if (status === 200) return "the answer is not from a CEEMS API server";
  return `the server answered with status ${status}`;
}
