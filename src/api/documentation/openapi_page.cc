// The description of the API for people: one page without scripts.
#include <fmt/format.h>

#include "api/documentation/openapi.h"
#include "api/documentation/openapi_words.h"
#include "base/html.h"
#include "base/version.h"

namespace ceems::api {
namespace {

constexpr std::string_view kStyle = R"(:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
code, td:first-child { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8888; padding: .25rem .5rem; text-align: left; vertical-align: top; }
section { border-top: 2px solid #8888; margin-top: 2rem; }
form { display: grid; gap: .5rem; max-width: 40rem; }
label { display: grid; gap: .1rem; }
label.flag { display: flex; gap: .5rem; }
input { font: inherit; padding: .25rem; }
button { font: inherit; justify-self: start; padding: .25rem 1rem; }
pre { overflow: auto; }
:focus-visible { outline: 3px solid #0a6cbd; outline-offset: 2px; }
.skip { position: absolute; left: -100vw; }
.skip:focus { position: static; }
)";

/// Text with `code` as Markdown has it.
std::string prose(std::string_view text) {
  std::string out;
  bool code = false;
  for (std::size_t at = text.find('`'); at != std::string_view::npos; at = text.find('`')) {
    out += escape_html(text.substr(0, at));
    out += code ? "</code>" : "<code>";
    code = !code;
    text.remove_prefix(at + 1);
  }
  return out + escape_html(text);
}

std::string id_of(std::string_view path) {
  std::string id(path);
  for (char& c : id) {
    c = c == '/' ? '-' : c;
  }
  return id;
}

std::string_view caller_words(Caller caller) {
  switch (caller) {
    case Caller::kAdmin:
      return "For administrators.";
    case Caller::kUser:
      return "For users.";
    case Caller::kAnyone:
      break;
  }
  return "For anyone.";
}

void append_params(std::string& out, const Route& route) {
  const auto params = params_of(route);
  if (params.empty()) {
    out += "<p>No parameters.</p>\n";
    return;
  }
  out +=
      "<table><thead><tr><th scope=\"col\">Parameter</th><th scope=\"col\">Meaning</th></tr>"
      "</thead><tbody>\n";
  for (const ParamInfo* info : params) {
    fmt::format_to(std::back_inserter(out), "<tr><td>{}{}</td><td>{}</td></tr>\n", info->name,
                   is_required(route, info->param) ? " (required)" : "", prose(info->help));
  }
  out += "</tbody></table>\n";
}

void append_fields(std::string& out, const Route& route) {
  const auto fields = fields_of(route.shape);
  if (fields.empty()) {
    return;
  }
  out +=
      "<details><summary>Fields of the answer</summary>\n<table><thead><tr>"
      "<th scope=\"col\">Field</th><th scope=\"col\">Meaning</th>"
      "<th scope=\"col\">Example</th></tr></thead><tbody>\n";
  for (const store::Field& field : fields) {
    fmt::format_to(std::back_inserter(out),
                   "<tr><td>{}</td><td>{}</td><td><code>{}</code></td></tr>\n", field.name,
                   prose(field.help), escape_html(field.example));
  }
  out += "</tbody></table></details>\n";
}

void append_form(std::string& out, const Route& route) {
  fmt::format_to(std::back_inserter(out),
                 "<details><summary>Try it</summary>\n<form method=\"get\" "
                 "action=\"../api/v1/{0}\" aria-label=\"Request {0}\">\n",
                 route.path);
  for (const ParamInfo* info : params_of(route)) {
    if (info->type == ParamType::kFlag) {
      fmt::format_to(std::back_inserter(out),
                     "<label class=\"flag\"><input type=\"checkbox\" name=\"{0}\" value=\"true\">"
                     "{0}</label>\n",
                     info->name);
    } else {
      const bool number = info->type == ParamType::kSeconds || info->type == ParamType::kCount;
      fmt::format_to(std::back_inserter(out),
                     "<label>{0}<input name=\"{0}\"{1}{2} autocomplete=\"off\"></label>\n",
                     info->name, number ? " inputmode=\"numeric\"" : "",
                     is_required(route, info->param) ? " required" : "");
    }
  }
  out += "<button>Send</button>\n</form></details>\n";
}

void append_route(std::string& out, const Route& route) {
  fmt::format_to(std::back_inserter(out),
                 "<section aria-labelledby=\"{0}\">\n<h3 id=\"{0}\"><code>GET "
                 "/api/v1/{1}</code></h3>\n<p>{2} {3}</p>\n",
                 id_of(route.path), route.path, prose(route.summary), caller_words(route.caller));
  append_params(out, route);
  append_fields(out, route);
  append_form(out, route);
  out += "</section>\n";
}

void append_errors(std::string& out) {
  out +=
      "<h2 id=\"errors\">Errors</h2>\n<p>An error is "
      "<code>{&quot;status&quot;:&quot;error&quot;,&quot;data&quot;:null,"
      "&quot;errorType&quot;:&quot;…&quot;,&quot;error&quot;:&quot;…&quot;}</code>; 404 and 429 "
      "are plain text.</p>\n<table><thead><tr><th scope=\"col\">errorType</th>"
      "<th scope=\"col\">Status</th><th scope=\"col\">When</th></tr></thead><tbody>\n";
  for (const ApiErrorInfo& error : all_errors()) {
    fmt::format_to(std::back_inserter(out), "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                   error.word, error.status, prose(error.when));
  }
  out +=
      "</tbody></table>\n<h2 id=\"headers\">Headers of answers</h2>\n<table><thead><tr>"
      "<th scope=\"col\">Header</th><th scope=\"col\">Meaning</th></tr></thead><tbody>\n";
  for (const HeaderWords& header : all_headers()) {
    fmt::format_to(std::back_inserter(out), "<tr><td>{}</td><td>{}</td></tr>\n", header.name,
                   prose(header.help));
  }
  out += "</tbody></table>\n";
}

}  // namespace

std::string openapi_page(const DocumentOptions& options) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<title>CEEMS API</title><link rel=\"stylesheet\" href=\"style.css\"></head>\n<body>\n"
      "<a class=\"skip\" href=\"#endpoints\">Skip to the endpoints</a>\n<header>\n"
      "<h1>CEEMS API</h1>\n";
  fmt::format_to(std::back_inserter(out),
                 "<p>Version {}. As a document for programs: <a href=\"doc.json\">OpenAPI 3.1</a>. "
                 "Base: <code>{}/api/v1</code>.</p>\n",
                 escape_html(version().version), escape_html(server_root(options)));
  out += "<p>Who asks is told by ";
  for (std::size_t i = 0; i < options.user_headers.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}<code>{}</code>", i == 0 ? "" : ", ",
                   escape_html(options.user_headers[i]));
  }
  out +=
      ", which a proxy sets; the forms of this page work where one stands in front of it. "
      "Parameters with several values are repeated; unknown parameters and empty values are "
      "ignored.</p>\n</header>\n<nav aria-label=\"Endpoints\"><ul>\n";
  for (const Route& route : all_routes()) {
    fmt::format_to(std::back_inserter(out), "<li><a href=\"#{}\">{}</a></li>\n", id_of(route.path),
                   route.path);
  }
  out += "</ul></nav>\n<main>\n<h2 id=\"endpoints\">Endpoints</h2>\n";
  for (const Route& route : all_routes()) {
    append_route(out, route);
  }
  append_errors(out);
  out += "</main>\n</body>\n</html>\n";
  return out;
}

std::string_view openapi_style() {
  return kStyle;
}

}  // namespace ceems::api
