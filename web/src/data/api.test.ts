import assert from "node:assert/strict";
import { test } from "node:test";

import { Api, ApiError, readLogin, serverRoot, type Identity } from "./api";
import { emissionsOf } from "./emissions";
import { cleanName, nameInAddress, providerAddress, roleText, viewsOf, widestView } from "./identity";

test("the API is found at the root, below /ui and behind a prefix", () => {
  const at = (pathname: string) => serverRoot({ origin: "http://h:1", pathname });
  assert.equal(at("/"), "http://h:1/");
  assert.equal(at("/index.html"), "http://h:1/");
  assert.equal(at("/ui/"), "http://h:1/");
  assert.equal(at("/ui"), "http://h:1/");
  assert.equal(at("/ceems/ui/index.html"), "http://h:1/ceems/");
  assert.equal(at("/guide/"), "http://h:1/guide/");
});

test("the name leaves the address, what cannot be a header is no name", () => {
  assert.deepEqual(nameInAddress("http://h/ui/?user=ada&x=1#/unit/c/u"), { name: "ada", rest: "/ui/?x=1#/unit/c/u" });
  assert.deepEqual(nameInAddress("http://h/?user=a%0d%0aX:%20y#/"), { name: null, rest: "/#/" });
  assert.equal(cleanName("  ada "), "ada");
  assert.equal(cleanName("a\nb"), null);
  assert.equal(cleanName("日本"), null);
  assert.equal(cleanName(""), null);
});

function answering(status: number, body: string): typeof fetch {
  return async () => new Response(body, { status, headers: { Date: "Sat, 05 Apr 2031 08:15:00 GMT" } });
}

test("answers give data and the server's time", async () => {
  let seen: [string, string | null] = ["", null];
  const fetcher: typeof fetch = async (input, init) => {
    seen = [String(input), new Headers(init?.headers).get("X-Grafana-User")];
    return answering(200, '{"status":"success","data":[{"uuid":"1"}],"warnings":["w"],"missing":[{"cluster_id":"b","reason":"unavailable"}]}')(input);
  };
  const answer = await new Api("http://h/", "ada", fetcher).units("all", [["running", "1"], ["field", "uuid"]]);
  assert.deepEqual(seen, ["http://h/api/v1/units/admin?running=1&field=uuid", "ada"]);
  assert.deepEqual(answer, { login: null, data: [{ uuid: "1" }], next: null, previous: null, warnings: ["w"], missing: [{ cluster_id: "b", reason: "unavailable" }], serverTime: Date.UTC(2031, 3, 5, 8, 15) });
});

test("failures become one sentence", async () => {
  const ask = (fetcher: typeof fetch) => new Api("http://h/", null, fetcher).units("mine", []).then(() => null, (error: unknown) => error);
  const message = async (status: number, body: string) => ((await ask(answering(status, body))) as ApiError).message;
  assert.equal(await message(401, '{"status":"error","errorType":"unauthorized","error":"no user identified"}'), "you are not logged in");
  assert.equal(await message(400, '{"status":"error","data":null,"errorType":"bad_data","error":"invalid query fields"}'), "invalid query fields");
  assert.equal(await message(502, "<html>"), "the server answered with status 502");
  assert.equal(await message(200, "<html>log in</html>"), "the answer is not from a CEEMS API server");
  assert.equal(await message(200, "null"), "the answer is not from a CEEMS API server");
  const down = await ask(async () => {
    throw new TypeError("fetch failed");
  });
  assert.ok(down instanceof ApiError);
  assert.equal(down.status, 0);
});

test("the emission figure closest to place and time comes first, a site's own before all", () => {
  assert.deepEqual(emissionsOf({ global_total: 4, owid_total: 3, emaps_total: 2, rte_total: 1 }).map((e) => e.grams), [1, 2, 3, 4]);
  assert.deepEqual(emissionsOf({ owid_total: 3, site_total: 9 }).map((e) => e.source.name), ["site", "country average"]);
  assert.deepEqual(emissionsOf(undefined), []);
});

const kLea: Identity = { user: "lea", admin: false, role: "project_lead", led: [{ cluster_id: "a", project: "optics" }] };

test("each role is offered the views that it may ask for", () => {
  const views = (identity: Identity) => viewsOf(identity).map((v) => v.view);
  assert.deepEqual(views({ user: "ada", admin: false, role: "user", led: [] }), ["own"]);
  assert.deepEqual(views({ user: "ada", admin: false }), ["own"]);
  assert.deepEqual(views(kLea), ["led", "own"], "a lead starts with the projects");
  assert.deepEqual(views({ user: "sue", admin: false, role: "support" }), ["all", "own"]);
  assert.deepEqual(views({ user: "op", admin: true }), ["all", "own"]);
  assert.deepEqual(views({ user: "op", admin: true, role: "admin", led: kLea.led }), ["all", "own", "led"]);
  assert.equal(widestView(kLea), "mine");
  assert.equal(widestView({ user: "sue", admin: false, role: "support" }), "all");
  assert.equal(roleText(kLea), "project lead");
  assert.equal(roleText({ user: "op", admin: true }), "administrator");
  assert.equal(roleText({ user: "ada", admin: false }), "");
});

test("views become paths and scopes", async () => {
  const seen: string[] = [];
  const fetcher: typeof fetch = async (input) => {
    seen.push(String(input));
    return answering(200, '{"status":"success","data":[]}')(input);
  };
  const api = new Api("http://h/", null, fetcher);
  for (const view of ["own", "led", "mine", "all"] as const) await api.units(view, [["uuid", "1"]]);
  assert.deepEqual(seen, [
    "http://h/api/v1/units?uuid=1&scope=own",
    "http://h/api/v1/units?uuid=1&scope=led",
    "http://h/api/v1/units?uuid=1",
    "http://h/api/v1/units/admin?uuid=1",
  ]);
});

test("the ways to log in come with 401, and only in the form they should have", async () => {
  const body = '{"status":"error","errorType":"unauthorized","error":"no user identified","login":{"header":null,"local":true,"oidc":"SSO","token":"t"}}';
  let asked = 0;
  const api = new Api("http://h/", null, answering(401, body));
  api.onstranger = () => asked++;
  const error = await api.whoami().then(() => null, (e: unknown) => e);
  assert.ok(error instanceof ApiError);
  assert.deepEqual(error.login, { header: null, local: true, oidc: "SSO", site: "", token: "t" });
  assert.equal(asked, 1);
  assert.equal(readLogin(undefined), null);
  assert.equal(readLogin("x"), null);
  assert.equal(readLogin({ local: true, site: "<b>HPC</b>", token: "t" })?.site, "<b>HPC</b>");
  assert.deepEqual(readLogin({ header: 7, local: "yes", oidc: "", token: {} }), { header: null, local: false, oidc: null, site: "", token: "" });
});

test("the page asks who it is so that an unknown caller is no error", async () => {
  const asked: string[] = [];
  const fetcher: typeof fetch = async (input) => {
    asked.push(String(input));
    return new Response('{"status":"success","data":[],"login":{"header":"X-User","local":false,"oidc":null,"token":""}}');
  };
  const error = await new Api("http://h/", null, fetcher).whoami().then(() => null, (e: unknown) => e);
  assert.ok(error instanceof ApiError);
  assert.equal(error.status, 401);
  assert.equal(error.login?.header, "X-User");
  assert.deepEqual(asked, ["http://h/api/v1/whoami?anonymous=true"]);
});

test("a login is a form, its refusal one sentence that asks nobody again", async () => {
  let seen: [string, string | undefined, string] = ["", "", ""];
  const answer = (status: number, body: string): typeof fetch => async (input, init) => {
    seen = [String(input), init?.method, String(init?.body)];
    return new Response(body, { status });
  };
  await new Api("http://h/p/", null, answer(200, '{"status":"success","data":null}')).logIn("ada", "a&b c", "t");
  assert.deepEqual(seen, ["http://h/p/login", "POST", "user=ada&password=a%26b+c&token=t"]);
  const api = new Api("http://h/", null, answer(401, '{"status":"error","data":null,"error":"User name or password is wrong."}'));
  api.onstranger = () => assert.fail("a wrong password is no lost session");
  await assert.rejects(api.logIn("ada", "x", "t"), { message: "user name or password is wrong" });
  await new Api("http://h/", null, answer(200, '{"status":"success","data":null}')).logOut("t2");
  assert.deepEqual(seen, ["http://h/logout", "POST", "token=t2"]);
});

test("a login at the provider leads back to the same page", () => {
  assert.equal(
    providerAddress("http://h/p/", { pathname: "/p/ui/", hash: "#/unit/a/1" }),
    "http://h/p/login/oidc?next=%2Fp%2Fui%2F%23%2Funit%2Fa%2F1",
  );
});
