import assert from "node:assert/strict";
import { test } from "node:test";

import type { Unit } from "../../data/api";
import { linksOf } from "./links";

const kUnit: Unit = { uuid: "4711", cluster_id: "hpc-a", username: "ada", project: "a&b/c", started_at_ts: 1000, ended_at_ts: 5000 };
const kLater = 9000;

test("variables are replaced by escaped values of the unit", () => {
  const url = "https://grafana.example.org/d/p?var-service={uuid}&var-project={project}&from={from_ms}&to={to_ms}#{cluster}/{user}";
  assert.deepEqual(linksOf(kUnit, [{ name: "Profiles", url, clusters: [] }], kLater), [
    { name: "Profiles", href: "https://grafana.example.org/d/p?var-service=4711&var-project=a%26b%2Fc&from=1000&to=5000#hpc-a/ada" },
  ]);
});

test("a unit that runs is shown until now", () => {
  const [link] = linksOf({ ...kUnit, ended_at_ts: undefined }, [{ name: "a", url: "/p?{from_ms}-{to_ms}", clusters: [] }], kLater);
  assert.equal(link?.href, "/p?1000-9000");
});

test("only units of the named clusters have a link", () => {
  const links = (clusters: string[]) => linksOf(kUnit, [{ name: "a", url: "/a", clusters }], kLater).length;
  assert.equal(links([]), 1);
  assert.equal(links(["hpc-b", "hpc-a"]), 1);
  assert.equal(links(["hpc-b"]), 0);
});

test("links lead to web pages only, whatever the names in them", () => {
  for (const url of ["javascript:alert(1)", "data:text/html,x", "//evil.example.org", "/\\evil.example.org", "vbscript:x"])
    assert.deepEqual(linksOf(kUnit, [{ name: "a", url, clusters: [] }], kLater), [], url);
  const [link] = linksOf({ ...kUnit, uuid: "\"><script>{user}" }, [{ name: "a", url: "/d/{uuid}/{unknown}", clusters: [] }], kLater);
  assert.equal(link?.href, "/d/%22%3E%3Cscript%3E%7Buser%7D/{unknown}");
});
