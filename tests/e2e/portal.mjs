// The portal of a site: a page at http://localhost:PORT that shows the page of CEEMS in frames, and its proxy at http://127.0.0.1:PORT, another
// origin, which has signed the user in and names them to the server.

import { createServer, request } from "node:http";

const listen = (handler, host) => new Promise((resolve) => {
  const server = createServer(handler).listen(0, host, () => resolve(server));
});

export async function startPortal() {
  let target = null;
  let user = "";
  const proxy = await listen((asked, answer) => {
    const headers = { ...asked.headers, "x-grafana-user": user };
    const onward = request(target + asked.url, { method: asked.method, headers }, (given) => {
      answer.writeHead(given.statusCode, given.headers);
      given.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    asked.pipe(onward);
  }, "127.0.0.1");
  const proxied = `http://127.0.0.1:${proxy.address().port}`;
  const page = await listen((asked, answer) => {
    const frames = new URL(asked.url, "http://localhost").searchParams.getAll("frame");
    answer.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
    answer.end(`<!doctype html><html lang="en"><title>Portal</title><h1>Portal</h1>${frames.map((frame, i) =>
      `<iframe title="frame ${i}" width="300" height="200" src="${proxied}/${frame.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}"></iframe>`).join("")}`);
  }, "localhost");
  return {
    origin: `http://localhost:${page.address().port}`,
    proxied,
    forward(to, name) {
      target = to;
      user = name;
    },
    close() {
      page.close();
      proxy.close();
      page.closeAllConnections();
      proxy.closeAllConnections();
    },
  };
}
