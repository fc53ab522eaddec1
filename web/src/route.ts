// The fragment of the address selects the page, so the server serves only one.

export type Route = { page: "units" } | { page: "unit"; cluster: string; uuid: string; started: number | null } | { page: "unknown" };

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function parseRoute(hash: string): Route {
  const parts = hash.replace(/^#?\/?/, "").split("/").map(decode);
  if (parts.length === 1 && (parts[0] === "" || parts[0] === "units")) return { page: "units" };
  if (parts[0] === "unit" && (parts.length === 3 || parts.length === 4) && parts[2]) {
    const started = Number(parts[3]);
    return { page: "unit", cluster: parts[1] ?? "", uuid: parts[2], started: started > 0 ? started : null };
  }
  return { page: "unknown" };
}

export function unitAddress(cluster: string, uuid: string, started: number | null): string {
  return `#/unit/${[cluster, uuid, ...(started ? [String(started)] : [])].map(encodeURIComponent).join("/")}`;
}
