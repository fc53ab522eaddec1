import assert from "node:assert/strict";
import { test } from "node:test";

import { Api } from "./api";
import { listTokens, makeToken, revokeToken, tokenName } from "./tokens";

interface Asked {
  url: string;
  method: string;
  type: string;
  body: string;
}

/** A server that answers all requests with `data`. */
function server(data: unknown, status = 200) {
  const asked: Asked[] = [];
  const fetcher = async (url: string | URL | Request, init: RequestInit = {}) => {
    const body = init.body instanceof Blob ? init.body : new Blob([]);
    asked.push({ url: String(url), method: init.method ?? "GET", type: body.type, body: await body.text() });
    return new Response(JSON.stringify({ status: status === 200 ? "success" : "error", data, error: "no" }), { status });
  };
  return { asked, api: new Api("http://s/", null, fetcher as typeof fetch) };
}

test("a token is made by a request in JSON, and its secret is what comes back", async () => {
  const { asked, api } = server({ id: "a", token: "ceems_pat_x" });
  assert.equal(await makeToken(api, "my \"laptop\"", "read-led", 30), "ceems_pat_x");
  assert.deepEqual(asked, [{ url: "http://s/api/v1/tokens", method: "POST", type: "application/json", body: '{"name":"my \\"laptop\\"","scope":"read-led","days":30}' }]);
});

test("a token is revoked by its id, whatever that holds", async () => {
  const { asked, api } = server(null);
  await revokeToken(api, "a&b=c/d");
  assert.deepEqual(asked.map(({ url, method }) => [method, url]), [["DELETE", "http://s/api/v1/tokens?id=a%26b%3Dc%2Fd"]]);
});

test("a list is one, even if the server sends something else", async () => {
  assert.deepEqual(await listTokens(server([{ id: "a" }]).api), [{ id: "a" }]);
  assert.deepEqual(await listTokens(server({ id: "a" }).api), []);
  assert.deepEqual(await listTokens(server(null).api), []);
  await assert.rejects(listTokens(server(null, 404).api), { status: 404 });
});

test("names are those that the server accepts", () => {
  assert.equal(tokenName("  laptop "), "laptop");
  assert.equal(tokenName("é".repeat(50)), "é".repeat(50));
  for (const text of ["", "   ", "a\nb", "a\u0000b", "a\u001b[31m", "x".repeat(101), "é".repeat(51)]) assert.equal(tokenName(text), null, JSON.stringify(text));
});
