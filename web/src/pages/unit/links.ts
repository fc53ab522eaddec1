// Links of a unit to other pages of the site, which the configuration of the server describes.

import type { Unit, UnitLink } from "../../data/api";

export interface Link {
  name: string;
  href: string;
}

/** Until now for a unit that runs, and from its submission if it has not started. */
export function linksOf(unit: Unit, templates: UnitLink[], now: number): Link[] {
  const values: Record<string, string> = {
    uuid: unit.uuid,
    cluster: unit.cluster_id ?? "",
    user: unit.username ?? "",
    project: unit.project ?? "",
    from_ms: String(Math.floor(unit.started_at_ts || unit.created_at_ts || now)),
    to_ms: String(Math.ceil(unit.ended_at_ts || now)),
  };
  const links: Link[] = [];
  for (const template of templates) {
    if (template.clusters.length > 0 && !template.clusters.includes(unit.cluster_id ?? "")) continue;
    // The server has checked the template; a proxy or an older file may not have.
    if (!/^(https?:\/\/|\/(?![/\\]))/.test(template.url)) continue;
    const href = template.url.replace(/\{(\w+)\}/g, (whole, name: string) => {
      const value = values[name];
      return value === undefined ? whole : encodeURIComponent(value);
    });
    links.push({ name: template.name, href });
  }
  return links;
}
